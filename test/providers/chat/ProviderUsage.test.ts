import { FastCheck as fc } from "effect"
import {
  findUnexplained,
  type ProviderCounts,
  readCacheCounts,
  readUsage
} from "../../../src/providers/chat/ProviderUsage.ts"
import { usageOf } from "../../contracts/ChatScenarios.ts"
import { assert, describe, it } from "../../harness/It.ts"

const none: ProviderCounts = { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0, total: 0 }
const counts = (input: Partial<ProviderCounts>): ProviderCounts => ({ ...none, ...input })

interface Row {
  readonly name: string
  readonly given: Partial<ProviderCounts>
  readonly usage: Parameters<typeof usageOf>[0]
  /** Counts of a host that includes reasoning only in the total. */
  readonly isHidden?: boolean
  /** Unexplained tokens. */
  readonly isUnexplained?: boolean
}

const rows: ReadonlyArray<Row> = [
  {
    name: "hidden reasoning beside a completion",
    given: { prompt: 9, completion: 6, total: 109 },
    isHidden: true,
    usage: { prompt: 9, completion: 100, reasoning: 94 }
  },
  {
    name: "hidden reasoning without a completion",
    given: { prompt: 21, total: 81 },
    isHidden: true,
    usage: { prompt: 21, completion: 60, reasoning: 60 }
  },
  {
    name: "hidden reasoning that the host names all the same",
    given: { prompt: 21, reasoning: 60, total: 81 },
    isHidden: true,
    usage: { prompt: 21, completion: 60, reasoning: 60 }
  },
  {
    name: "hidden reasoning as large as what came from a cache",
    given: { prompt: 100, completion: 5, cached: 40, total: 145 },
    isHidden: true,
    usage: { prompt: 100, completion: 45, cached: 40, reasoning: 40 }
  },
  {
    name: "a total without a prompt, which hides none",
    given: { completion: 6, total: 109 },
    isHidden: true,
    usage: { completion: 6 },
    isUnexplained: true
  },
  {
    name: "a total that the host's counts do not explain",
    given: { prompt: 9, completion: 6, total: 109 },
    usage: { prompt: 9, completion: 6 },
    isUnexplained: true
  },
  {
    name: "a total below its parts",
    given: { prompt: 9, completion: 6, total: 3 },
    usage: { prompt: 9, completion: 6 }
  },
  {
    name: "reasoning apart",
    given: { prompt: 10, completion: 5, reasoning: 20, total: 35 },
    usage: { prompt: 10, completion: 25, reasoning: 20 }
  },
  {
    name: "reasoning above its completion, without a total",
    given: { prompt: 10, completion: 5, reasoning: 20 },
    usage: { prompt: 10, completion: 25, reasoning: 20 }
  },
  {
    name: "cache reads and writes beside the prompt",
    given: { prompt: 100, completion: 5, cached: 30, cacheWrite: 20, total: 155 },
    usage: { prompt: 150, completion: 5, cached: 30, cacheWrite: 20 }
  },
  {
    name: "cache writes beside a prompt that has the reads",
    given: { prompt: 100, completion: 5, cached: 80, cacheWrite: 50, total: 155 },
    usage: { prompt: 150, completion: 5, cached: 80, cacheWrite: 50 }
  },
  {
    name: "cache reads and reasoning apart",
    given: { prompt: 100, completion: 5, cached: 30, reasoning: 7, total: 142 },
    usage: { prompt: 130, completion: 12, cached: 30, reasoning: 7 }
  },
  {
    name: "writes above the prompt, whatever the total says",
    given: { prompt: 31, completion: 467, cacheWrite: 1253, total: 498 },
    usage: { prompt: 1284, completion: 467, cacheWrite: 1253 }
  },
  {
    name: "writes above the prompt and more in the total",
    given: { prompt: 31, completion: 7, cacheWrite: 100, total: 200 },
    usage: { prompt: 131, completion: 7, cacheWrite: 100 },
    isUnexplained: true
  }
]

const count = fc.nat({ max: 10_000 })

describe("the counts of a host", () => {
  it.each(rows)(
    "are read where they have $name",
    ({ given: input, isHidden = false, isUnexplained = false, usage }) => {
      assert.deepStrictEqual(readUsage(counts(input), isHidden), usageOf(usage))
      assert.strictEqual(findUnexplained(counts(input), isHidden) !== undefined, isUnexplained)
    }
  )

  it("with hidden reasoning add up to their total", () => {
    fc.assert(
      fc.property(count, count, count, (prompt, completion, hidden) => {
        const total = 1 + prompt + completion + hidden
        const usage = readUsage(counts({ prompt: 1 + prompt, completion, total }), true)
        assert.strictEqual((usage?.prompt ?? 0) + (usage?.completion ?? 0), total)
        assert.strictEqual(usage?.reasoning, hidden)
      })
    )
  })

  it("cost what they cost without a total that they do not explain", () => {
    fc.assert(
      fc.property(count, count, count, count, count, (prompt, completion, cached, cacheWrite, total) => {
        const input = counts({ prompt, completion, cached, cacheWrite, total })
        if (findUnexplained(input) === undefined) return
        assert.deepStrictEqual(readUsage(input), readUsage({ ...input, total: 0 }))
      })
    )
  })

  it("never lose a token that the host counts, nor have a part above its whole", () => {
    fc.assert(
      fc.property(
        count,
        count,
        count,
        count,
        count,
        fc.boolean(),
        (prompt, completion, cached, written, total, hidden) => {
          const input = counts({ prompt, completion, cached, cacheWrite: written, total })
          const usage = readUsage(input, hidden) ?? usageOf({})
          assert.isAtLeast(usage.prompt, prompt)
          assert.isAtLeast(usage.completion, completion)
          assert.deepStrictEqual([usage.cached, usage.cacheWrite], [cached, written])
          assert.isAtMost(cached + written, usage.prompt)
        }
      )
    )
  })
})

describe("what a host wrote to a cache", () => {
  const split = { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 10 }
  it.each([
    [{}, { cache_write_tokens: 30 }, 30, undefined],
    [{}, { cache_creation_input_tokens: 30 }, 30, undefined],
    [{}, { cache_creation_tokens: 30 }, 30, undefined],
    [{ cache_creation_input_tokens: 30 }, {}, 30, undefined],
    [{ cache_creation_input_tokens: 30 }, { cache_creation_tokens: 0 }, 30, undefined],
    [{}, { cache_creation_token_details: split }, 30, 10],
    [{ cache_creation: split }, {}, 30, 10],
    [{ cache_creation_input_tokens: 30, cache_creation: split }, {}, 30, 10],
    [{}, { cache_write_tokens: 30, cache_write_1h_tokens: 30 }, 30, 30],
    [{}, { cache_creation_tokens: 30, cache_creation: { ephemeral_5m_input_tokens: 30 } }, 30, undefined],
    [{ cache_creation_input_tokens: "30" }, { cache_creation_token_details: [] }, 0, undefined]
  ] as const)("is read from %j with the details %j", (usage, details, cacheWrite, cacheWriteHour) => {
    assert.deepInclude(readCacheCounts(usage, details), { cacheWrite, cacheWriteHour })
  })
})
