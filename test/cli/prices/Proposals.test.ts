import path from "node:path"
import { Effect } from "effect"
import { check } from "../../../src/cli/prices/Check.ts"
import { options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { checked, priced, proposed, proposedOf } from "./Proposed.ts"

const fixture = (name: string) => path.join(import.meta.dirname, "feeds", name)

const idsOf = (proposed: ReadonlyArray<{ readonly model: object }>) =>
  proposed.map(({ model }) => ("id" in model ? model.id : undefined))

describe("proposals from a price feed", () => {
  it.effect("pass the check, with the feed too, and have its exact prices", function* () {
    const { feed, proposals, yaml } = yield* proposed(fixture("litellm.json"))
    const { feed: compared, losses, models } = yield* check(options({ text: yaml }), { feed })
    assert.deepStrictEqual(losses, [])
    assert.deepStrictEqual(
      compared?.drifts.map(({ model, what }) => [model, what]),
      [["claude-haiku-4-5", "retirement"]]
    )
    assert.deepStrictEqual(
      models.map(({ id }) => id),
      ["gemini-3.1-pro-preview", "gemini-3-pro-image", "gpt-5.4-mini", "claude-haiku-4-5"]
    )
    assert.include(yaml, "cached_prompt_per_1m_usd: 0.075")
    assert.include(yaml, "above: 200000\n        prompt_per_1m_usd: 4\n        completion_per_1m_usd: 18\n")
    assert.include(yaml, "cache_write_1h_per_1m_usd: 2")
    assert.deepInclude(proposals.skipped, {
      entry: "fal_ai/fal-ai/hailuo",
      why: "the feed lacks the lengths of its videos"
    })
    assert.notInclude(yaml, "s3cret")
    assert.include(yaml, "without headers")
  })

  it.scoped("are limited to a vendor, by the feed's or the catalog's name", function* () {
    const feed = { "gpt-9": priced, "gemini/gemini-9": { ...priced, litellm_provider: "gemini" } }
    for (const vendor of ["Gemini", "google"]) {
      assert.deepStrictEqual(idsOf((yield* proposedOf(feed, vendor)).proposals.proposed), ["gemini-9"])
    }
    assert.strictEqual(
      (yield* Effect.flip(proposedOf(feed, "zz"))).message,
      "The catalog has no provider zz. It has: gemini, google, openai, anthropic, openrouter, fal_ai, fal"
    )
  })

  it.scoped("leave out what the catalog has, versions of what is there, variants and the retired", function* () {
    const google = { ...priced, litellm_provider: "gemini" }
    const { proposals } = yield* proposedOf({
      "gemini/gemini-2.5-flash": google,
      "gemini/gemini-2-5-flash-20260101": google,
      "gpt-9-2026-05-01": priced,
      "gpt-9": priced,
      "gpt-8-2026-05-01": priced,
      "ft:gpt-9": priced,
      "us/gpt-8": priced,
      "1024-x-1024/gpt-image-9": { ...priced, mode: "image_generation", output_cost_per_image: 0.04 },
      "gpt-3": { ...priced, deprecation_date: "1969-01-01" },
      "gpt-10": { ...priced, deprecation_date: "2999-01-01" }
    })
    assert.deepStrictEqual(idsOf(proposals.proposed), ["gpt-9", "gpt-10", "gpt-8-2026-05-01"])
    assert.deepStrictEqual(
      proposals.skipped.map(({ entry, why }) => [entry, why]),
      [
        ["ft:gpt-9", "its price is for a variant of a model"],
        ["us/gpt-8", "its price is for a variant of a model"],
        ["1024-x-1024/gpt-image-9", "its price is for a variant of a model"],
        ["gpt-3", "the feed says it is retired"]
      ]
    )
  })

  it.scoped("skip incomplete entries, whose id a reseller's entry can take", function* () {
    const { max_input_tokens: _, ...unlimited } = priced
    const resold = (entry: object) => ({ ...entry, litellm_provider: "openrouter" })
    const { proposals } = yield* proposedOf({
      "talk-9": unlimited,
      "talk-10": priced,
      "talk-11": unlimited,
      "openrouter/openai/talk-9": resold(priced),
      "openrouter/openai/talk-10": resold(priced),
      "openrouter/openai/talk-11": resold(unlimited)
    })
    assert.deepStrictEqual(
      proposals.proposed.map(({ entry }) => entry),
      ["talk-10", "openrouter/openai/talk-9"]
    )
    assert.deepStrictEqual(
      proposals.skipped.map(({ entry }) => entry),
      ["talk-9", "talk-11", "openrouter/openai/talk-11"]
    )
    for (const { why } of proposals.skipped) assert.include(why, "context_length is missing")
  })

  it.scoped("are skipped if a catalog cannot state the price", function* () {
    const { proposals } = yield* proposedOf({
      asked: { ...priced, input_cost_per_request: 0.01 },
      thinking: { ...priced, output_cost_per_reasoning_token: 9e-7 },
      plain: { ...priced, output_cost_per_reasoning_token: 6e-7 },
      steps: {
        ...priced,
        input_cost_per_token_above_128k_tokens: 3e-7,
        input_cost_per_token_above_200k_tokens: 6e-7
      }
    })
    assert.deepStrictEqual(idsOf(proposals.proposed), ["plain"])
    assert.deepStrictEqual(proposals.skipped, [
      { entry: "asked", why: "a catalog cannot express its input_cost_per_request" },
      { entry: "thinking", why: "a catalog cannot express its output_cost_per_reasoning_token" },
      { entry: "steps", why: "its price changes at several prompt lengths" }
    ])
  })

  it.scoped("have a context window that holds the output", function* () {
    const { proposals } = yield* proposedOf({
      "talk-9": { ...priced, max_input_tokens: 1000 },
      "talk-10": { ...priced, max_input_tokens: 8000 }
    })
    assert.deepStrictEqual(
      proposals.proposed.map(({ model }) => model.context_length),
      [9000, 8000]
    )
  })

  it.scoped("skip hostile entries with a reason, and are never anything but a catalog", function* () {
    const { proposals, yaml } = yield* proposedOf({
      good: priced,
      "a: b\n- {": priced,
      __proto: { ...priced, litellm_provider: "openai" },
      null: priced,
      "1e5": { ...priced, source: "x\n  - id: evil" },
      dear: { ...priced, input_cost_per_token: 1e300 },
      fine: { ...priced, input_cost_per_token: 1e-300 },
      words: { ...priced, output_cost_per_token: "cheap" },
      negative: { ...priced, output_cost_per_token: -1 },
      wide: { ...priced, max_input_tokens: 1e18 },
      free: { ...priced, input_cost_per_token: 0 },
      list: { ...priced, litellm_provider: ["openai"] }
    })
    const { models } = yield* checked(yaml)
    assert.deepStrictEqual(models.map(({ id }) => id).toSorted(), ["1e5", "good", "null"])
    const amount = "output_cost_per_token must be a number of 0 or more"
    const unknown = "its price of prompt or completion is missing or 0"
    assert.deepInclude(Object.fromEntries(proposals.skipped.map(({ entry, why }) => [entry, why])), {
      dear: "pricing.prompt_per_1m_usd must be at most 1000000 USD",
      fine: unknown,
      free: unknown,
      words: amount,
      negative: amount,
      wide: "context_length must be an integer from 1 to 1000000000"
    })
    assert.includeMembers(
      proposals.skipped.map(({ entry }) => entry),
      ["__proto", "a: b\n- {"]
    )
    assert.lengthOf(proposals.skipped, 8)
  })
})
