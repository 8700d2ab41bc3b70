import path from "node:path"
import { Effect } from "effect"
import { check } from "../../../src/cli/prices/Check.ts"
import { options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { checked, priced, proposed, proposedOf } from "./Proposed.ts"

const fixture = (name: string) => path.join(import.meta.dirname, "feeds", name)

describe("what is proposed of a feed", () => {
  it.effect("of LiteLLM's passes the check, with the feed too, and has its exact prices", function* () {
    const { feed, proposals, yaml } = yield* proposed(fixture("litellm.json"))
    const { feed: compared, losses, models } = yield* check(options({ text: yaml }), feed)
    assert.deepStrictEqual(losses, [])
    assert.deepStrictEqual(compared?.drifts, [])
    assert.deepStrictEqual(
      models.map(({ id }) => id),
      ["gemini-3.1-pro-preview", "gemini-3-pro-image", "gpt-5.4-mini", "claude-haiku-4-5"]
    )
    assert.include(yaml, "cached_prompt_per_1m_usd: 0.075")
    assert.include(yaml, "above: 200000\n        prompt_per_1m_usd: 4\n        completion_per_1m_usd: 18\n")
    assert.include(yaml, "cache_write_1h_per_1m_usd: 2")
    assert.deepStrictEqual(
      proposals.incomplete.map(({ id, problem }) => [id, problem]),
      [["fal-ai/hailuo", "seconds is missing"]]
    )
    assert.include(yaml, "  # - id: fal-ai/hailuo")
    assert.notInclude(yaml, "s3cret")
    assert.include(yaml, "without headers")
  })

  it.scoped("is limited to a vendor, by the feed's or the catalog's name", function* () {
    const feed = { "gpt-9": priced, "claude-9": { ...priced, litellm_provider: "anthropic" } }
    assert.deepStrictEqual(
      (yield* proposedOf(feed, "Anthropic")).proposals.complete.map(({ id }) => id),
      ["claude-9"]
    )
    const { message } = yield* Effect.flip(proposedOf(feed, "anthropix"))
    assert.match(message, /no vendor anthropix; did you mean anthropic\? The vendors are: anthropic, openai$/)
    assert.match(
      (yield* Effect.flip(proposedOf(feed, "zz"))).message,
      /no vendor zz\. The vendors are: anthropic, openai$/
    )
  })

  it.scoped("leaves out what the catalog has, snapshots of what is there, variants and the retired", function* () {
    const google = { ...priced, litellm_provider: "gemini" }
    const { proposals } = yield* proposedOf({
      "gemini/gemini-2.5-flash": google,
      "gemini/gemini-2-5-flash-20260101": google,
      "gpt-9": priced,
      "gpt-9-2026-05-01": priced,
      "ft:gpt-9": priced,
      "us/gpt-8": priced,
      "gpt-3": { ...priced, deprecation_date: "1969-01-01" },
      "gpt-10": { ...priced, deprecation_date: "2999-01-01" }
    })
    assert.deepStrictEqual(
      proposals.complete.map(({ id }) => id),
      ["gpt-9", "gpt-10"]
    )
  })

  it.scoped("says that the price of one size and quality is skipped", function* () {
    const image = { litellm_provider: "openai", mode: "image_generation", input_cost_per_image: 0.04 }
    const { proposals } = yield* proposedOf({ "medium/1024-x-1024/gpt-image-9": image, "gpt-9": priced })
    assert.deepStrictEqual(proposals.skipped, [
      { entry: "medium/1024-x-1024/gpt-image-9", why: "it is the price of one size and quality" }
    ])
  })

  it.scoped("that are comments leave their id to the next whose entry is complete", function* () {
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
      proposals.complete.map(({ entry }) => entry),
      ["talk-10", "openrouter/openai/talk-9"]
    )
    assert.deepStrictEqual(
      proposals.incomplete.map(({ entry }) => entry),
      ["talk-9", "talk-11"]
    )
  })

  it.scoped("have a context window that holds the output", function* () {
    const { proposals, yaml } = yield* proposedOf({
      "talk-9": { ...priced, max_input_tokens: 1000 },
      "talk-10": { ...priced, max_input_tokens: 8000 }
    })
    assert.deepStrictEqual(
      proposals.complete.map(({ model }) => model.context_length),
      [9000, 8000]
    )
    assert.include(yaml, "# context_length: of the prompt; 16000 if the vendor counts the output too")
    assert.notInclude(yaml, "of the prompt; 1000")
    assert.include(yaml, "# max_output: as large as the window")
  })

  it.scoped("skips hostile entries with a reason, and is never anything but a catalog", function* () {
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
    assert.deepStrictEqual(proposals.skipped.map(({ entry }) => entry).toSorted(), [
      "__proto",
      "a: b\n- {",
      "fine",
      "free",
      "negative",
      "words"
    ])
    assert.deepStrictEqual(
      proposals.incomplete.map(({ entry, problem }) => [entry, problem]),
      [
        ["dear", "pricing.prompt_per_1m_usd must be at most 1000000 USD"],
        ["wide", "context_length must be an integer of 1 to 1000000000"]
      ]
    )
  })
})
