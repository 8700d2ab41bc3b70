import path from "node:path"
import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { check, type FeedReport } from "../../../src/cli/prices/Check.ts"
import { readFeed } from "../../../src/cli/prices/Feed.ts"
import { toUsdText } from "../../../src/domain/Money.ts"
import { options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { directoryWith, temporaryDirectory } from "../../harness/temporary.ts"

const fixture = (name: string) => path.join(import.meta.dirname, "feeds", name)

const text = `
providers:
  google: {adapter: gemini, base_url: "https://generativelanguage.googleapis.com", credential: K}
  resale: {adapter: openai-chat, base_url: "https://openrouter.ai/api/v1", credential: K}
  maker: {adapter: openai-responses, base_url: "https://api.openai.com/v1", credential: K}
  painter: {adapter: openai-images, base_url: "https://api.openai.com/v1", credential: K}
  anthropic: {adapter: anthropic, base_url: "https://claude.proxy.test", credential: K}
  acme: {adapter: openai-chat, base_url: "https://api.acme.test/v1", credential: K}
  fal: {adapter: fal-queue, base_url: "https://queue.fal.run", credential: K}
families:
  house: {sampling: true}
  capped: {sampling: false, max_output: 8192, max_output_policy: reject}
models:
  - id: pro
    surface: chat
    family: house
    context_length: 1000000
    max_output: 65536
    capabilities: [web_search]
    pricing:
      web_search_per_1k_usd: 12
      prompt_per_1m_usd: 2.2
      completion_per_1m_usd: 13
      cached_prompt_per_1m_usd: 0.22
      long_context: {above: 200000, prompt_per_1m_usd: 4.4, completion_per_1m_usd: 20}
      official: {prompt_per_1m_usd: 2, completion_per_1m_usd: 15}
    routes:
      - provider: google
        model: gemini-3.1-pro-preview
        cost: {prompt_per_1m_usd: 2, completion_per_1m_usd: 12, cached_prompt_per_1m_usd: 0.2, web_search_per_1k_usd: 10, long_context: {above: 200000, prompt_per_1m_usd: 4, completion_per_1m_usd: 18}}
      - {provider: resale, model: google/gemini-3.1-pro-preview, preference: 2, capabilities: []}
  - id: gpt-5.4-mini
    surface: chat
    family: house
    context_length: 400000
    max_output: 128000
    pricing: {prompt_per_1m_usd: 0.8, completion_per_1m_usd: 4.5, cached_prompt_per_1m_usd: 0.075}
    routes: [{provider: maker, model: gpt-5.4-mini}]
  - id: haiku
    surface: chat
    family: capped
    context_length: 200000
    pricing: {prompt_per_1m_usd: 1, completion_per_1m_usd: 5, cached_prompt_per_1m_usd: 0.1, cache_write_per_1m_usd: 1.25}
    routes:
      - {provider: anthropic, model: claude-haiku-4-5}
      - {provider: acme, model: claude-haiku-4-5, cost: {prompt_per_1m_usd: 1, completion_per_1m_usd: 5, cached_prompt_per_1m_usd: 0.1, cache_write_per_1m_usd: 1.25}}
  - id: gpt-image-1.5
    surface: image
    pricing: {per_image_usd: 0.03}
    routes:
      - {provider: painter, model: gpt-image-1.5, cost: {per_image_usd: 0.03}}
  - id: veo-3.1-generate-001
    surface: video
    pricing: {per_second_usd: 0.35}
    seconds: {allowed: [4, 8], default: 4}
    routes: [{provider: fal, model: fal-ai/veo3.1, cost: {per_second_usd: 0.3}}]
  - id: hailuo
    surface: video
    pricing: {per_video_usd: 0.4}
    seconds: {allowed: [6, 10], default: 6}
    routes: [{provider: fal, model: fal-ai/hailuo, cost: {per_video_usd: 0.3}}]
  - id: unheard-of
    surface: image
    pricing: {per_image_usd: 0.03}
    routes: [{provider: fal, model: fal-ai/new}]
`

const compared = Effect.fnUntraced(function* (file: string) {
  const { feed, losses } = yield* check(options({ text }), { feed: yield* readFeed(file) })
  if (feed === undefined) return yield* Effect.dieMessage("no feed")
  return { feed, losses }
}, Effect.provide(NodeContext.layer))

const shown = (value: bigint | number | string | null) => (typeof value === "bigint" ? toUsdText(value) : value)
const drifts = (feed: FeedReport) =>
  feed.drifts.map(({ catalog, entry, feed: fed, model, route, what }) => [
    route ?? model,
    what,
    shown(catalog),
    shown(fed),
    entry
  ])
const litellm = fixture("litellm.json")

describe("a price feed", () => {
  it.effect("of LiteLLM's shape", function* () {
    const { feed, losses } = yield* compared(litellm)
    assert.deepInclude(feed, { entries: 12, unmatched: ["unheard-of"] })
    const gemini = "gemini/gemini-3.1-pro-preview"
    const found = drifts(feed)
    assert.sameDeepMembers(found, [
      ["pro@google", "cost of cached prompt per 1M above 200000", "0.2", "0.4", gemini],
      ["pro@google", "cost of 1000 web searches", "10", "14", gemini],
      ["pro", "list price of completion per 1M", "15", "12", gemini],
      ["pro", "context_length", 1_000_000, 1_048_576, gemini],
      ["gpt-5.4-mini", "list price of prompt per 1M", "0.8", "0.75", "gpt-5.4-mini"],
      ["gpt-image-1.5@painter", "cost of 1K image", "0.03", "0.034", "gpt-image-1.5"],
      ["haiku", "list price of one-hour cache write per 1M", "1.25", "2", "claude-haiku-4-5"],
      ["haiku@anthropic", "retirement", null, "2026-10-15", "claude-haiku-4-5"],
      ["veo-3.1-generate-001", "list price of 8 s clip", "2.8", "3.2", "gemini/veo-3.1-generate-001"],
      ["hailuo@fal", "cost of 10 s clip", "0.3", "0.5", "fal_ai/fal-ai/hailuo"]
    ])
    const below = (route: string, unit: string, entry: string) =>
      `${route}: the price of ${unit} is below the feed's price of ${entry}`
    assert.deepStrictEqual(losses, [
      below("pro@google", "cached prompt per 1M above 200000", gemini),
      below("pro@google", "1000 web searches", gemini),
      below("haiku@anthropic", "one-hour cache write per 1M", "claude-haiku-4-5"),
      below("gpt-image-1.5@painter", "1K image", "gpt-image-1.5"),
      below("hailuo@fal", "10 s clip", "fal_ai/fal-ai/hailuo")
    ])
  })

  it.scoped("in the encodings of Windows", function* () {
    const body = JSON.stringify({
      "gpt-9": { litellm_provider: "openai", input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, mode: "chat" }
    })
    const directory = yield* directoryWith({
      "utf8.json": `\ufeff${body}`,
      "utf16.json": Buffer.from(`\ufeff${body}`, "utf16le")
    })
    for (const name of ["utf8.json", "utf16.json"]) {
      const { entries } = yield* Effect.provide(readFeed(path.join(directory, name)), NodeContext.layer)
      assert.deepStrictEqual([...entries.keys()], ["gpt-9"])
    }
  })
})

describe("a file that is no price feed", () => {
  const entry = (fields: object) => JSON.stringify({ "gpt-5.4-mini": { litellm_provider: "openai", ...fields } })
  const neither = "does not have the format of LiteLLM's model_prices_and_context_window.json"
  const amount = "must be a number of 0 or more"
  const cases: ReadonlyArray<readonly [name: string, body: string, why: string | RegExp]> = [
    ["no JSON", '{"a": ', /is not valid JSON: /],
    ["empty", "", /is not valid JSON: /],
    ["a list", "[]", neither],
    ["null", "null", neither],
    ["an empty object", "{}", neither],
    ["the list of OpenRouter", '{"data": [{"id": "openai/gpt-5.4-mini", "pricing": {"prompt": "1"}}]}', neither],
    ["the list of models.dev", '{"openai": {"id": "openai", "models": {}}}', neither],
    ["a price in words", entry({ input_cost_per_token: "cheap" }), `gpt-5.4-mini.input_cost_per_token ${amount}`],
    ["a negative price", entry({ output_cost_per_token: -1e-6 }), `gpt-5.4-mini.output_cost_per_token ${amount}`],
    [
      "a search's price in words",
      entry({ search_context_cost_per_query: { search_context_size_medium: "dear" } }),
      `gpt-5.4-mini.search_context_size_medium ${amount}`
    ],
    ["a window in words", entry({ max_input_tokens: "many" }), `gpt-5.4-mini.max_input_tokens ${amount}`]
  ]
  for (const [name, body, why] of cases) {
    it.scoped(`${name}: ${body.slice(0, 60)}`, function* () {
      const directory = yield* directoryWith({ "feed.json": body })
      const file = path.join(directory, "feed.json")
      const error = yield* Effect.flip(compared(file))
      if (error._tag !== "CommandFailed") return assert.fail(error._tag)
      if (typeof why === "string") assert.strictEqual(error.message, `${file}: ${why}`)
      else assert.match(error.message, why)
    })
  }

  it.scoped("one that is not there", function* () {
    const file = path.join(yield* temporaryDirectory, "feed.json")
    assert.strictEqual((yield* Effect.flip(compared(file))).message, `${file}: there is no such file`)
  })
})
