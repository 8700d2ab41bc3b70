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
    assert.include(yaml, "long_context: {above: 200000, prompt_per_1m_usd: 4, completion_per_1m_usd: 18")
    assert.include(yaml, "cache_write_1h_per_1m_usd: 2")
    assert.deepStrictEqual(
      proposals.incomplete.map(({ id, missing }) => [id, missing]),
      [["fal-ai/hailuo", ["seconds"]]]
    )
    assert.include(yaml, "  # - id: fal-ai/hailuo")
    assert.notInclude(yaml, "s3cret")
    assert.include(yaml, "headers are left out")
  })

  it.effect(
    "of OpenRouter's takes efforts, limits and a tier; nothing free, variable or charged otherwise",
    function* () {
      const { proposals, yaml } = yield* proposed(fixture("openrouter.json"))
      const { models } = yield* checked(yaml)
      assert.deepStrictEqual(
        models.map(({ id }) => id),
        ["gemini-3.1-pro-preview", "talk-9"]
      )
      assert.include(yaml, "reasoning: [low, high]")
      assert.include(yaml, "cache_write_1h_per_1m_usd: 0.333")
      assert.include(yaml, 'created: "2026-02-19"')
      assert.deepStrictEqual(
        proposals.skipped.map(({ entry }) => entry),
        ["acme/talk-9:free", "acme/night", "openrouter/auto", "acme/searcher", "acme/painter"]
      )
    }
  )

  it.effect("of genai-prices' takes the price of the day; what lacks its limits is a comment", function* () {
    const { proposals, yaml } = yield* proposed(fixture("genai-prices.json"))
    assert.deepStrictEqual(proposals.skipped.map(({ entry }) => entry).toSorted(), [
      "anthropic/claude-2",
      "google/gemini-embedding-001"
    ])
    assert.deepStrictEqual([...proposals.unserved], [["deepseek", 1]])
    // Their family in this catalog says how long an answer may be.
    const { models } = yield* checked(yaml)
    assert.deepStrictEqual(
      models.map(({ id }) => id),
      ["gemini-3.9-nano", "claude-haiku-4-5", "claude-opus-4-6"]
    )
    assert.deepStrictEqual(
      proposals.incomplete.map(({ id, missing }) => [id, missing]),
      [["gemini-3.1-pro-preview", ["context_length"]]]
    )
  })

  it.effect("of models.dev's passes the check", function* () {
    const { proposals, yaml } = yield* proposed(fixture("modelsdev.json"))
    assert.deepStrictEqual(
      proposals.complete.map(({ id }) => id),
      ["gemini-3.1-pro-preview"]
    )
    yield* checked(yaml)
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

  const named = (id: string, more: object = {}) => ({ id, prices: { input_mtok: 1, output_mtok: 5 }, ...more })
  const whole = { context_window: 200_000 }

  it.scoped("of Google's do not take Claude, which Vertex serves, from its maker", function* () {
    const feed = [
      { id: "google", models: [named("claude-9"), named("claude-10", whole), named("gemini-9", whole)] },
      { id: "anthropic", models: [named("claude-9", whole), named("claude-10", whole)] }
    ]
    const { proposals, yaml } = yield* proposedOf(feed)
    assert.deepStrictEqual(
      proposals.complete.map(({ entry, seller }) => [entry, seller.name]),
      [
        ["google/gemini-9", "google"],
        ["anthropic/claude-9", "anthropic"],
        ["anthropic/claude-10", "anthropic"]
      ]
    )
    assert.deepStrictEqual(proposals.incomplete, [])
    assert.deepStrictEqual([...proposals.unserved], [["google-vertex", 2]])
    yield* checked(yaml)
  })

  it.scoped("that are comments leave their id to the next whose entry is complete", function* () {
    const { proposals } = yield* proposedOf([
      { id: "openai", models: [named("talk-9"), named("talk-10", whole), named("talk-11")] },
      {
        id: "openrouter",
        models: [named("openai/talk-9", whole), named("openai/talk-10", whole), named("openai/talk-11")]
      }
    ])
    assert.deepStrictEqual(
      proposals.complete.map(({ entry }) => entry),
      ["openai/talk-10", "openrouter/openai/talk-9"]
    )
    assert.deepStrictEqual(
      proposals.incomplete.map(({ entry }) => entry),
      ["openai/talk-9", "openai/talk-11"]
    )
  })

  it.scoped("are no chats where a name says that it makes something else, by the token too", function* () {
    const others = {
      "gpt-image-9": "images",
      "gpt-9-image-mini": "images",
      "gpt-9-audio-preview": "audio",
      "gpt-9-mini-tts": "audio",
      "gpt-9-transcribe": "audio",
      "sora-9": "videos",
      "text-embedding-9": "embeddings"
    }
    const { proposals } = yield* proposedOf([
      {
        id: "openai",
        models: [
          ...Object.keys(others).map((id) => named(id, whole)),
          named("painter-9", { ...whole, name: "Nano Banana 9" }),
          named("imagery-9", { ...whole, name: "Deliver 9" })
        ]
      }
    ])
    assert.deepStrictEqual(
      proposals.complete.map(({ id }) => id),
      ["imagery-9"]
    )
    assert.deepStrictEqual(
      proposals.skipped,
      Object.entries({ ...others, "painter-9": "images" }).map(([id, makes]) => ({
        entry: `openai/${id}`,
        why: `its name says that it makes ${makes}`
      }))
    )
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
      "dear",
      "fine",
      "free",
      "negative",
      "wide",
      "words"
    ])
  })
})
