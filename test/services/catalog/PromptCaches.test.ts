import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

const environment = { ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "k", OPENAI_API_KEY: "k", OPENROUTER_API_KEY: "k" }

describe("the built-in catalog", () => {
  it.effect("caches by itself on every route to Claude that can, at prices for both kinds of writes", function* () {
    const { models } = yield* load({ text: builtIn, environment })
    const claudes = models.flatMap((model) => (model.surface === "chat" && model.family === "C" ? [model] : []))
    assert.lengthOf(claudes, 9)
    for (const { id, pricing, routes } of claudes) {
      const options = routes.map(({ options, provider }) => [provider.name, options.cache])
      assert.deepStrictEqual(options, [
        ["anthropic", "auto"],
        ["anthropic-openai", undefined],
        ["openrouter", "auto"]
      ])
      const { cacheWrite = 0n, cacheWriteHour = 0n, cachedPrompt = 0n, prompt } = pricing
      assert.deepStrictEqual(
        [cacheWrite * 4n, cacheWriteHour, cachedPrompt * 10n],
        [prompt * 5n, prompt * 2n, prompt],
        id
      )
    }
  })

  it.effect("sends marks to no other model but those whose writes it prices", function* () {
    const { models } = yield* load({ text: builtIn, environment })
    const marked = models.flatMap((model) =>
      model.surface === "chat" && model.routes.some(({ options }) => options.cache !== undefined) ? [model] : []
    )
    for (const { id, pricing } of marked) assert.isDefined(pricing.cacheWrite, id)
    assert.deepStrictEqual(
      marked.filter(({ family }) => family !== "C").map(({ id }) => id),
      ["gpt-5.6"]
    )
  })
})
