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
    "supports_vision",
    "search_context_cost_per_query",
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

const perToken = (price: bigint) => Number(`${price}e-15`)
const feedOf = (entries: Entries) => ({
  known: priced,
  ...Object.fromEntries(
    Object.entries(entries).map(([id, { cached, completion, extra, prompt }]) => [
      id,
      {
        ...flat,
        input_cost_per_token: perToken(prompt),
        output_cost_per_token: perToken(completion),
        cache_read_input_token_cost: perToken(cached),
        ...extra
      }
    ])
  )
})

describe("whatever the feed", () => {
  it.scoped("what is proposed passes the check and has its prices", function* () {
    const samples = fc.sample(fc.dictionary(name, entry, { minKeys: 1, maxKeys: 6 }), { numRuns: runs(25), seed: 7 })
    let count = 0
    for (const entries of samples) {
      const { proposals, yaml } = yield* proposedOf(feedOf(entries))
      if (proposals.proposed.length > 0) yield* checked(yaml)
      else assert.notMatch(yaml, /^ *[^# \n]/m)
      for (const { entry: id, model } of proposals.proposed) {
        const own = Object.hasOwn(entries, id) ? entries[id] : undefined
        if (own === undefined) continue
        count++
        const prices = {
          prompt_per_1m_usd: own.prompt,
          completion_per_1m_usd: own.completion,
          cached_prompt_per_1m_usd: own.cached
        }
        assert.deepInclude(model.pricing, prices)
        for (const [key, price] of Object.entries(prices)) assert.include(yaml, `${key}: ${toUsdText(price)}\n`)
      }
    }
    assert.isAbove(count, 20)
  })

  it.scoped("a document of any shape is refused or proposes nothing that fails the check", function* () {
    for (const document of fc.sample(fc.jsonValue(), { numRuns: runs(60), seed: 3 })) {
      const refused = yield* Effect.either(proposedOf(document))
      if (refused._tag === "Left") assert.strictEqual(refused.left._tag, "CommandFailed")
    }
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`
    assert.strictEqual((yield* Effect.flip(proposedOf(deep)))._tag, "CommandFailed")
  })
})
