import { assert, describe, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { options as decoder, Options } from "../../src/providers/anthropic/Options.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { builtIn, options } from "../harness/fixtures/Catalogs.ts"
import { routeTo } from "../providers/anthropic/Hosts.ts"
import { fences, page, section, table } from "./Markdown.ts"

const providers = page("docs/providers.md")
const told = table(section(providers, "Anthropic's Messages API"), "Option")

describe("the options of anthropic", () => {
  it("are those of the docs", () => {
    assert.sameMembers(
      told.map(([name]) => name),
      Object.keys(Options.fields)
    )
  })

  for (const [name, values] of Object.entries({
    auth: ["x-api-key", "bearer"],
    thinking: ["adaptive", "budget", "always"],
    thinking_off: ["disabled", "between_tools"]
  })) {
    it(`${name} takes what the docs say, and nothing else`, () => {
      const [, effect = ""] = told.find(([option]) => option === name) ?? []
      const taken = (value: string) => Either.isRight(decoder.decode({ [name]: value }))
      for (const value of values) {
        assert.isTrue(taken(value), value)
        assert.include(effect.split("`"), value)
      }
      assert.isFalse(taken("another"))
    })
  }

  it("have the defaults of the docs", () => {
    const { auth, thinking, version } = decoder.of(routeTo("http://x"))
    for (const [name, value] of Object.entries({ auth, thinking, version })) {
      const [, effect = ""] = told.find(([option]) => option === name) ?? []
      assert.include(effect, `\`${value}\` (default)`)
    }
  })

  for (const [name, text] of [
    ["the built-in catalog", builtIn],
    ["the example", fences(providers, "yaml").find((block) => block.includes("adapter: anthropic")) ?? ""]
  ] as const) {
    it.effect(`of ${name} are well-formed, and say how each model thinks`, () =>
      Effect.gen(function* () {
        const environment = { ANTHROPIC_API_KEY: "k", CLAUDE_API_KEY: "k" }
        const { models } = yield* Catalog.make(options({ text, environment }))
        const routes = models
          .flatMap((model) => (model.surface === "chat" ? model.routes : []))
          .filter(({ provider }) => provider.adapter === "anthropic")
        assert.isAbove(routes.length, 0)
        for (const route of routes) {
          decoder.of(route)
          assert.isDefined(route.options.thinking, route.id)
        }
      })
    )
  }
})
