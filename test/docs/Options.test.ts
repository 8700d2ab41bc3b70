import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { options as decoder, Options } from "../../src/providers/openai-images/Options.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../harness/fixtures/Catalogs.ts"
import { fences, page, section, table } from "./Markdown.ts"

const heading = "A host that speaks OpenAI's images API"
const providers = page("docs/providers.md")

const imageRoutes = (text: string) =>
  Effect.map(
    Catalog.make(options({ text, environment: { OPENAI_API_KEY: "k", PAINTER_API_KEY: "k" } })),
    ({ models }) =>
      models.flatMap((model) => {
        if (model.surface !== "image") return []
        return model.routes.filter(({ provider }) => provider.adapter === "openai-images")
      })
  )

describe("the options of openai-images", () => {
  it("are those of the docs", () => {
    const documented = table(section(providers, heading), "Option").map(([name]) => name)
    assert.sameMembers(documented, Object.keys(Options.fields))
  })

  for (const [name, values] of Object.entries({
    quality: ["auto", "low", "medium", "high", "standard"],
    background: ["auto", "opaque", "transparent"],
    output_format: ["png", "jpeg", "webp"],
    moderation: ["auto", "low"],
    response_format: ["b64_json"],
    edits: ["multipart", "json"],
    image_field: ["image[]", "image"]
  })) {
    it(`${name} takes what the docs say, and nothing else`, () => {
      const [, effect = ""] = table(section(providers, heading), "Option").find(([option]) => option === name) ?? []
      const taken = (value: string) => Either.isRight(decoder.decode({ [name]: value }))
      assert.deepStrictEqual(
        values.map(taken),
        values.map(() => true)
      )
      assert.isFalse(taken("another"))
      const told = new Set(effect.split("`"))
      for (const value of values) assert.isTrue(told.has(value), value)
    })
  }

  for (const [name, text] of [
    ["the built-in catalog", builtIn],
    ["the example", fences(providers, "yaml").find((block) => block.includes("openai-images")) ?? ""]
  ] as const) {
    it.effect(`of ${name} are well-formed, and pin what a picture costs`, () =>
      Effect.gen(function* () {
        const routes = yield* imageRoutes(text)
        assert.isAbove(routes.length, 0)
        for (const route of routes) {
          const { quality, size, sizes } = decoder.of(route)
          assert.oneOf(quality, ["low", "medium", "high"], route.id)
          for (const resolution of route.resolutions) {
            assert.match(sizes?.[resolution] ?? size ?? "", /^\d+x\d+$/, `${route.id} ${resolution}`)
          }
        }
      })
    )
  }
})
