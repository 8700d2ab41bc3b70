import { NodeFileSystem } from "@effect/platform-node"
import { Effect } from "effect"
import { makeEntrySpool } from "../../src/books/EntrySpool.ts"
import { assert, describe, it } from "../harness/It.ts"

const day = 86_400_000
const from = Date.UTC(2026, 9, 1)
const count = 2_000
const days = 30

/** Each a step of its own from the one before, so that neighbours are days apart. */
const entryOf = (number: number) => ({
  key: String(number),
  at: from + ((number * 7_919) % (days * 24)) * 3_600_000,
  model: `maker/m-${number % 7}\tü`,
  requestId: number % 3 === 0 ? undefined : `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
  usd: BigInt(number - 5) * 1_000_000_007n,
  promptTokens: number % 5 === 0 ? undefined : number,
  completionTokens: number % 2 === 0 ? undefined : 0
})

describe("entries of a file", () => {
  it.scoped("come back as they were added, those of a range alone and in their order, however many and mixed", () =>
    Effect.gen(function* () {
      const spool = yield* makeEntrySpool(20_000)
      const entries = Array.from({ length: count }, (_, number) => entryOf(number))
      for (const entry of entries) {
        spool.add(entry)
        yield* spool.makeRoom
      }
      const middle = from + 3.5 * day
      const isBefore = ({ at }: { readonly at: number }) => at < middle
      const first = yield* spool.read({ from, to: middle })
      const rest = yield* spool.read({ from: middle, to: from + days * day })
      assert.isTrue(first.every(isBefore))
      assert.isFalse(rest.some(isBefore))
      const byDay = (at: number) => Math.floor(at / day)
      const ordered = (all: typeof entries) => all.toSorted((a, b) => byDay(a.at) - byDay(b.at))
      assert.deepStrictEqual(first, ordered(entries.filter(isBefore)))
      assert.deepStrictEqual(rest, ordered(entries.filter((entry) => !isBefore(entry))))
      assert.deepStrictEqual(yield* spool.read({ from: 0, to: from }), [])
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )
})
