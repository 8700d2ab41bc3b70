import { Effect } from "effect"
import { builtIn, load } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { registered } from "../../providers/Registered.ts"

interface Promised {
  readonly adapter: string
  /** Of the provider. */
  readonly account?: string
  readonly sampling?: boolean
  readonly reasoning?: string
  readonly capabilities?: string
  /** More of the route. */
  readonly route?: string
}

/** A catalog of one model, whose second route is the one in question. */
const catalog = ({
  account = "",
  adapter,
  capabilities = "[]",
  reasoning = "none",
  route = "",
  sampling
}: Promised) => `
providers:
  able: {adapter: sandbox}
  maker: {adapter: ${adapter}, base_url: "https://maker.test", options: {${account}}}
families:
  F: {sampling: ${sampling ?? false}, reasoning: ${reasoning}, capabilities: ${capabilities}}
models:
  - id: m
    surface: chat
    family: F
    context_length: 1000
    max_output: 100
    pricing: {prompt_per_1m_usd: 1, completion_per_1m_usd: 1}
    routes:
      - {provider: able, model: m}
      - {provider: maker, model: m${route}}
`

const drawing = (route: string) => `
providers:
  maker: {adapter: gemini, base_url: "https://maker.test"}
models:
  - id: m
    surface: image
    edit: true
    variants: [{resolution: 1K, price_usd: 1}, {resolution: 4K, price_usd: 2}]
    routes:
      - {provider: maker, model: m}
      - {provider: maker, model: m${route}}
`

const verdict = (text: string) =>
  Effect.flatMap(registered, (adapters) =>
    load({ text, adapters }).pipe(
      Effect.as("valid"),
      Effect.catchAll(({ message }) => Effect.succeed(message))
    )
  )

const searching = "web_search: {plugins: [{id: web}]}"

describe("a catalog that promises what an adapter cannot do", () => {
  const sampled = "use a family with sampling: false"
  /** What the adapter lacks, what is to be done, and the catalog after that. */
  const refused: ReadonlyArray<readonly [Promised, words: string, fix: string, after: Partial<Promised>]> = [
    [
      { adapter: "openai-chat", capabilities: "[tools, web_search]" },
      "web_search",
      "add capabilities: [tools] to the route",
      { route: ", capabilities: [tools]" }
    ],
    [
      { adapter: "openai-chat", capabilities: "[web_search]", account: "web_search: true" },
      "web_search",
      "add capabilities: [] to the route",
      { route: ", capabilities: []", account: "" }
    ],
    [
      {
        adapter: "openai-chat",
        capabilities: "[web_search]",
        account: searching,
        route: ", options: {web_search: no}"
      },
      "web_search",
      "add capabilities: [] to the route",
      { route: ", capabilities: []" }
    ],
    [
      { adapter: "anthropic", capabilities: "[tools, vision, response_format, web_search]" },
      "response_format",
      "add capabilities: [tools, vision, web_search] to the route",
      { route: ", capabilities: [tools, vision, web_search]" }
    ],
    [
      { adapter: "anthropic", capabilities: "[tools, response_format]", route: ", capabilities: [response_format]" },
      "response_format",
      "set capabilities: [] on the route",
      { route: ", capabilities: []" }
    ],
    [{ adapter: "anthropic", sampling: true }, "sampling", sampled, { sampling: false }],
    [
      { adapter: "openai-responses", sampling: true, capabilities: "[tools]" },
      "sampling",
      sampled,
      { sampling: false }
    ],
    [
      { adapter: "gemini", reasoning: "[low]", route: ", options: {thinking: none}" },
      "reasoning",
      "add reasoning: none to the route",
      { route: ", options: {thinking: none}, reasoning: none" }
    ]
  ]
  it.effect.each(refused)("is refused with its line, the features and what to do: %j", function* (one) {
    const [promised, words, fix, after] = one
    const said = `maker uses the adapter ${promised.adapter}, which does not support ${words} with these options: ${fix}`
    assert.strictEqual(yield* verdict(catalog(promised)), `catalog.yaml:16: models[0].routes[1]: ${said}`)
    assert.strictEqual(yield* verdict(catalog({ ...promised, ...after })), "valid")
  })

  it.effect("is refused if a route cannot generate its images", function* () {
    const at = "catalog.yaml:11: models[0].routes[1]: maker uses the adapter gemini, which does not support"
    const edits = `${at} edit with these options: add edit: false to the route`
    assert.strictEqual(yield* verdict(drawing(", options: {api: predict}")), edits)
    const sizes = `${at} 1K, 4K with these options: add resolutions: [the value that it supports] to the route`
    assert.strictEqual(yield* verdict(drawing(", options: {image_size: false}")), sizes)
    const narrowed = ", options: {api: predict, image_size: false}, edit: false, resolutions: [1K]"
    assert.strictEqual(yield* verdict(drawing(narrowed)), "valid")
  })
})

describe("a catalog that promises what its adapters can do", () => {
  const kept: ReadonlyArray<Promised> = [
    { adapter: "openai-chat", sampling: true, reasoning: "[low]", capabilities: "[tools, vision, response_format]" },
    { adapter: "openai-chat", capabilities: "[web_search]", account: searching },
    { adapter: "openai-chat", capabilities: "[web_search]", route: `, options: {${searching}}` },
    { adapter: "openai-chat", capabilities: "[tools, web_search]", route: ", capabilities: [tools]" },
    { adapter: "openai-responses", reasoning: "[low]", capabilities: "[tools, vision, response_format, web_search]" },
    { adapter: "anthropic", reasoning: "binary", capabilities: "[tools, vision, web_search]" },
    { adapter: "anthropic", capabilities: "[tools, response_format]", route: ", capabilities: []" },
    {
      adapter: "gemini",
      sampling: true,
      reasoning: "[low]",
      capabilities: "[tools, vision, response_format, web_search]"
    },
    { adapter: "gemini", reasoning: "[low]", route: ", options: {thinking: none}, reasoning: none" },
    {
      adapter: "sandbox",
      sampling: true,
      reasoning: "binary",
      capabilities: "[tools, vision, response_format, web_search]"
    }
  ]
  it.effect.each(kept)("is valid: %j", function* (promised) {
    assert.strictEqual(yield* verdict(catalog(promised)), "valid")
  })

  it.effect("is valid where it is the built-in one", () =>
    Effect.map(verdict(builtIn), (said) => assert.strictEqual(said, "valid"))
  )
})
