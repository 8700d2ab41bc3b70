import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { options as decoder, Options } from "../../src/providers/openai-responses/Options.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../harness/fixtures/Catalogs.ts"
import { wrongOptions } from "../harness/fixtures/WrongOptions.ts"
import { fences, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")
const told = table(section(providers, "A host that speaks OpenAI's Responses API"), "Option")

describe("the options of openai-responses", () => {
  it("are those of the docs", () => {
    assert.sameMembers(
      told.map(([name]) => name),
      Object.keys(Options.fields)
    )
  })

  it("reasoning_summary takes what the docs say, and nothing else", () => {
    const [, effect = ""] = told.find(([name]) => name === "reasoning_summary") ?? []
    const taken = (value: string) => Either.isRight(decoder.decode({ reasoning_summary: value }))
    for (const value of ["auto", "concise", "detailed", "none"]) {
      assert.isTrue(taken(value), value)
      assert.include(effect.split("`"), value)
    }
    assert.isFalse(taken("always"))
  })

  it("a misspelt one is refused", () => {
    const message = wrongOptions(decoder.decode({ inline_image: true, web_search: "yes" }))
    for (const name of ["inline_image", "web_search"]) assert.include(message, name)
  })

  for (const [name, text] of [
    ["the built-in catalog", builtIn],
    ["the example", fences(providers, "yaml").find((block) => block.includes("openai-responses")) ?? ""]
  ] as const) {
    it.effect(`of ${name} are well-formed`, () =>
      Effect.gen(function* () {
        const environment = { OPENAI_API_KEY: "k", THINKER_API_KEY: "k" }
        const { models } = yield* Catalog.make(options({ text, environment }))
        const routes = models
          .flatMap((model) => (model.surface === "chat" ? model.routes : []))
          .filter(({ provider }) => provider.adapter === "openai-responses")
        assert.isAbove(routes.length, 0)
        for (const route of routes) decoder.of(route)
      })
    )
  }
})
