import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { RouteBase } from "../../src/domain/Model.ts"
import { options as decoder, Options } from "../../src/providers/replicate/Replicate.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../harness/fixtures/Catalogs.ts"
import { clipRoute } from "../providers/replicate/Hosts.ts"
import { fences, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")
const documented = table(section(providers, "Models of Replicate"), "Option")
const effects = new Map(documented.map(([name, effect = ""]) => [name, effect]))

describe("the options of replicate", () => {
  it("are those of the docs", () => {
    assert.sameMembers(
      documented.map(([name]) => name),
      Object.keys(Options.fields)
    )
  })

  it("have the defaults of the docs", () => {
    const { isList, secondsField, sizeField } = decoder.of(clipRoute("https://api.replicate.com"))
    assert.include(effects.get("seconds_field"), `default \`${secondsField}\``)
    assert.include(effects.get("size_field"), `default \`${sizeField}\``)
    assert.include(effects.get("image_list"), "default `true` for `image_input` and names that end in `s`")
    assert.deepStrictEqual(["image_input", "input_images", "image", "start_image"].map(isList), [
      true,
      true,
      false,
      false
    ])
  })

  for (const [name, text] of [
    ["the built-in catalog", builtIn],
    ["the example", fences(providers, "yaml").find((block) => block.includes("adapter: replicate")) ?? ""]
  ] as const) {
    it.effect(`of ${name} are well-formed`, () =>
      Effect.gen(function* () {
        const { models } = yield* Catalog.make(options({ text, environment: { REPLICATE_API_TOKEN: "k" } }))
        const routes = models.flatMap((model): ReadonlyArray<RouteBase> => model.routes)
        assert.isAbove(routes.length, 0)
        for (const route of routes) decoder.of(route)
      })
    )
  }
})
