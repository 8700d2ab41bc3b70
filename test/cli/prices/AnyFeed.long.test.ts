import { Effect, FastCheck as fc } from "effect"
import { toUsdText } from "../../../src/domain/Money.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { checked, flat, priced, proposedOf } from "./Proposed.ts"

const nano = fc.bigInt({ min: 1n, max: 1_000_000_000_000_000n })
const plainName = fc.stringMatching(/^[a-z][a-z0-9.-]{0,12}$/)
const name = fc.oneof({ weight: 4, arbitrary: plainName }, { weight: 1, arbitrary: fc.string({ maxLength: 20 }) })
const junk = fc.dictionary(
  fc.constantFrom(
    "max_input_tokens",
    "max_output_tokens",
    "deprecation_date",
    "context_length",
    "context_window",
    "supported_parameters",
    "limit",
    "tiered_pricing"
  ),
  fc.oneof(fc.jsonValue(), fc.double(), fc.constant(-1))
)
const entry = fc.record({
  prompt: nano,
  completion: nano,
  cached: nano,
  extra: fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: junk })
})
type Entries = Readonly<
  Record<
    string,
    { readonly prompt: bigint; readonly completion: bigint; readonly cached: bigint; readonly extra: object }
  >
>

const mapEntries = (entries: Entries, to: (id: string, entry: Entries[string]) => object) =>
  Object.fromEntries(Object.entries(entries).map(([id, one]) => [id, { ...to(id, one), ...one.extra }]))

const perToken = (price: bigint) => Number(`${price}e-15`)
const perMillion = (price: bigint) => Number(`${price}e-9`)

/** The same prices as each feed writes them. */
const formats: ReadonlyArray<readonly [kind: string, write: (entries: Entries) => unknown]> = [
  [
    "LiteLLM's",
    (entries) => ({
      known: priced,
      ...mapEntries(entries, (_, { cached, completion, prompt }) => ({
        ...flat,
        input_cost_per_token: perToken(prompt),
        output_cost_per_token: perToken(completion),
        cache_read_input_token_cost: perToken(cached)
      }))
    })
  ],
  [
    "OpenRouter's",
    (entries) => ({
      data: Object.values(
        mapEntries(entries, (id, { cached, completion, prompt }) => ({
          id: `acme/${id}`,
          context_length: 100_000,
          architecture: { input_modalities: ["text"], output_modalities: ["text"] },
          top_provider: { max_completion_tokens: 8000 },
          pricing: {
            prompt: String(perToken(prompt)),
            completion: String(perToken(completion)),
            input_cache_read: String(perToken(cached))
          }
        }))
      )
    })
  ],
  [
    "genai-prices'",
    (entries) => [
      {
        id: "google",
        models: Object.values(
          mapEntries(entries, (id, { cached, completion, prompt }) => ({
            id,
            context_window: 100_000,
            prices: {
              input_mtok: perMillion(prompt),
              output_mtok: perMillion(completion),
              cache_read_mtok: perMillion(cached)
            }
          }))
        )
      }
    ]
  ],
  [
    "models.dev's",
    (entries) => ({
      openai: {
        models: mapEntries(entries, (_, { cached, completion, prompt }) => ({
          modalities: { input: ["text"], output: ["text"] },
          limit: { context: 100_000, output: 8000 },
          cost: { input: perMillion(prompt), output: perMillion(completion), cache_read: perMillion(cached) }
        }))
      }
    })
  ]
]

describe("whatever the feed", () => {
  for (const [kind, write] of formats) {
    it.scoped(`what is proposed of ${kind} passes the check and has its prices`, function* () {
      const samples = fc.sample(fc.dictionary(name, entry, { minKeys: 1, maxKeys: 6 }), { numRuns: runs(25), seed: 7 })
      let count = 0
      for (const entries of samples) {
        const { proposals, yaml } = yield* proposedOf(write(entries))
        if (proposals.complete.length > 0) yield* checked(yaml)
        else assert.notMatch(yaml, /^ *[^# \n]/m)
        for (const { id, lines } of proposals.complete) {
          const own = Object.hasOwn(entries, id) ? entries[id] : undefined
          if (own === undefined) continue
          count++
          const prices = {
            prompt_per_1m_usd: own.prompt,
            completion_per_1m_usd: own.completion,
            cached_prompt_per_1m_usd: own.cached
          }
          const pricing = lines.find(({ key, value }) => key === "pricing" && value !== undefined)?.value
          assert.deepInclude(pricing, prices)
          assert.include(
            yaml,
            Object.entries(prices)
              .map(([key, price]) => `${key}: ${toUsdText(price)}`)
              .join(", ")
          )
        }
      }
      assert.isAbove(count, 20)
    })
  }

  it.scoped("a document of any shape is refused or proposes nothing that fails the check", function* () {
    for (const document of fc.sample(fc.jsonValue(), { numRuns: runs(60), seed: 3 })) {
      const refused = yield* Effect.either(proposedOf(document))
      if (refused._tag === "Left") assert.strictEqual(refused.left._tag, "FeedInvalid")
    }
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`
    assert.strictEqual((yield* Effect.flip(proposedOf(deep)))._tag, "FeedInvalid")
  })
})
