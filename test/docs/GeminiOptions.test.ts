import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { options as decoder, Options } from "../../src/providers/gemini/Options.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../harness/fixtures/Catalogs.ts"
import { wrongOptions } from "../harness/fixtures/WrongOptions.ts"
import { fences, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")
const told = table(section(providers, "Google's Gemini API"), "Option")
const taken = (name: string, value: unknown) => Either.isRight(decoder.decode({ [name]: value }))

describe("the options of gemini", () => {
  it("are those of the docs", () => {
    assert.sameMembers(
      told.map(([name]) => name),
      Object.keys(Options.fields)
    )
  })

  for (const [name, values] of Object.entries({
    thinking: ["level", "budget", "none"],
    api: ["generate", "predict"]
  })) {
    it(`${name} takes what the docs say, and nothing else`, () => {
      const [, effect = ""] = told.find(([option]) => option === name) ?? []
      for (const value of values) {
        assert.isTrue(taken(name, value), value)
        assert.include(effect.split("`"), value)
      }
      assert.isFalse(taken(name, "another"))
    })
  }

  it("that are misspelt or have another value are refused by name", () => {
    const message = wrongOptions(decoder.decode({ image_sizes: false, aspect_ratio: "wide", call_signatures: "no" }))
    for (const name of ["image_sizes", "aspect_ratio", "call_signatures"]) assert.include(message, name)
    assert.isTrue(taken("aspect_ratio", "16:9"))
  })

  for (const [name, text] of [
    ["the built-in catalog", builtIn],
    ["the example", fences(providers, "yaml").find((block) => block.includes("adapter: gemini")) ?? ""]
  ] as const) {
    it.effect(`of ${name} are well-formed, and say how each model thinks and draws`, () =>
      Effect.gen(function* () {
        const { models } = yield* Catalog.make(options({ text, environment: { GEMINI_API_KEY: "k" } }))
        const routes = models.flatMap(({ routes, surface }) =>
          routes.filter(({ provider }) => provider.adapter === "gemini").map((route) => ({ ...route, surface }))
        )
        assert.isAbove(routes.length, 0)
        for (const route of routes) {
          const { api, image_size, thinking = "level" } = decoder.of(route)
          if (route.surface === "chat") {
            assert.strictEqual(thinking, route.model.startsWith("gemini-2.5") ? "budget" : "level", route.id)
          } else {
            assert.strictEqual(api === "predict", route.model.startsWith("imagen"), route.id)
            assert.strictEqual(image_size === false, route.model.startsWith("gemini-2.5"), route.id)
          }
        }
      })
    )
  }
})
