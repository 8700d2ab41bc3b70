import { Deferred, Effect, Fiber, Struct, TestClock } from "effect"
import type { ChatEvent, Usage } from "../../../src/domain/Chat.ts"
import type { ChatSink } from "../../../src/services/chat/ChatStream.ts"
import { content, failure, finish, hangs, ProviderFake, type Pull, route, streams } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { type Bench, nano, priced, running } from "./ChatBench.ts"

const prices = { cachedPrompt: undefined, cacheWrite: undefined, longContext: undefined }
/** To the operator a token costs half of what its customer pays, in nano-dollars. */
const a = route("a", { cost: { ...prices, prompt: nano(1n), completion: nano(5n) } })
const counts = (prompt: number, completion: number, reasoning = 0): Usage => {
  return { prompt, completion, cached: 0, cacheWrite: 0, reasoning }
}
const counted = (...given: Parameters<typeof counts>): ChatEvent => ({ type: "usage", usage: counts(...given) })
const countedSoFar = (...given: Parameters<typeof counts>): ChatEvent => {
  return { type: "usage", usage: counts(...given), isPartial: true }
}

interface Left {
  readonly name: string
  /** The client leaves once the first of them is written. */
  readonly pulls: ReadonlyArray<Pull>
  /** That the provider's call goes on for; undefined: it is cancelled at once. */
  readonly readsOn?: "1 second" | "2 seconds"
  /** Prompt and completion tokens. */
  readonly paid: readonly [prompt: number, completion: number]
  readonly notes?: ReadonlyArray<string>
}

const estimated = ["usage_estimated"]

const departures: ReadonlyArray<Left> = [
  {
    name: "in the middle pays the prompt and what it received",
    pulls: [[content("12345")], "hang"],
    readsOn: "2 seconds",
    paid: [100, 5],
    notes: estimated
  },
  {
    name: "in the middle pays nothing of what comes without it",
    pulls: [[content("12345")], { wait: "1 second" }, [content("678")], "hang"],
    readsOn: "2 seconds",
    paid: [100, 5],
    notes: estimated
  },
  {
    name: "pays the prompt as the host has counted it",
    pulls: [[counted(7, 0), content("12345")], "hang"],
    readsOn: "2 seconds",
    paid: [7, 5],
    notes: estimated
  },
  {
    name: "pays the host's count where its end comes in time",
    pulls: [[content("12345")], { wait: "1 second" }, [finish, counted(7, 2_000, 1_990)]],
    readsOn: "1 second",
    paid: [7, 2_000]
  },
  {
    name: "pays the gateway's count of the whole answer where its end has none",
    pulls: [[content("12345")], { wait: "1 second" }, [content("678")], [finish]],
    readsOn: "1 second",
    paid: [100, 8],
    notes: estimated
  },
  {
    name: "pays the count that its host told before an end that never comes",
    pulls: [[content("12345")], [counted(7, 2_000)], "hang"],
    readsOn: "2 seconds",
    paid: [7, 2_000]
  },
  {
    name: "pays what it received where the end comes too late",
    pulls: [[content("12345")], { wait: "3 seconds" }, [finish, counted(7, 2_000)]],
    readsOn: "2 seconds",
    paid: [100, 5],
    notes: estimated
  },
  {
    name: "pays what it received where the stream then breaks",
    pulls: [[content("12345")], { wait: "1 second" }, failure("network", undefined)],
    readsOn: "1 second",
    paid: [100, 5],
    notes: estimated
  },
  {
    name: "in the middle of a stream whose host counts along pays that count, and ends the call",
    pulls: [[content("12345"), countedSoFar(7, 900, 895)], "hang"],
    paid: [7, 900]
  },
  {
    name: "in the middle pays its text where the host has counted less",
    pulls: [[content("12345"), countedSoFar(7, 2, 1)], "hang"],
    paid: [7, 5],
    notes: estimated
  },
  {
    name: "pays for the reasoning that a host counts at its end alone",
    pulls: [[content("12345"), countedSoFar(7, 5)], { wait: "1 second" }, [finish, counted(7, 2_000, 1_995)]],
    readsOn: "1 second",
    paid: [7, 2_000]
  },
  {
    name: "at the end of what is visible waits for the last count of a host that counts along",
    pulls: [
      [content("12345"), countedSoFar(7, 900, 895), counted(7, 900, 895)],
      { wait: "1 second" },
      [finish, counted(7, 2_000, 1_995)]
    ],
    readsOn: "1 second",
    paid: [7, 2_000]
  },
  {
    name: "is never charged above its hold",
    pulls: [[content("12345")], [finish, counted(100_000, 1e9)]],
    readsOn: "1 second",
    paid: [100_000, 4_096],
    notes: ["usage_bounded", "hold_exceeded"]
  }
]

/** Asks, and leaves once something is written. */
const leaving = Effect.fnUntraced(function* ({ departure, stream, written }: Bench) {
  const work = yield* Effect.fork(stream(priced(a)))
  yield* Deferred.await(written)
  departure.leave()
  return work
})

const yields = Effect.repeatN(Effect.yieldNow(), 50)
const refusal: ChatEvent = { type: "finish", reason: "content_filter" }

/** An answer that was refused before any output, of which a client sees nothing before its end. */
const refusals: ReadonlyArray<readonly [what: string, pulls: ReadonlyArray<Pull>, paid: bigint, notes: Array<string>]> =
  [
    ["that was refused", [[counted(7, 0), refusal], "hang"], 0n, ["charge_waived"]],
    ["that was refused and is not counted", [[content(""), refusal], "hang"], 0n, ["usage_estimated", "charge_waived"]],
    ["that was refused after a token", [[counted(7, 1), refusal], "hang"], 7n + 10n, []],
    ["that is not refused yet", [[counted(7, 0)], "hang"], 7n, []]
  ]

describe("a client that disconnects from its stream", () => {
  it.effect.each(refusals)("before an answer %s", ([, pulls, paid, notes]) => {
    const fake = new ProviderFake().on(a, streams(...pulls))
    return running(fake, function* ({ departure, record, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* yields
      departure.leave()
      yield* Fiber.join(work)
      assert.strictEqual((yield* settled).spent, paid)
      assert.deepStrictEqual([...record.summary.notes], notes)
    })
  })

  it.effect.each(departures)("$name", ({ notes = [], paid: [prompt, completion], pulls, readsOn }) => {
    const fake = new ProviderFake().on(a, streams(...pulls))
    return running(fake, function* (job) {
      const work = yield* leaving(job)
      yield* yields
      if (readsOn === "2 seconds") {
        yield* TestClock.adjust("1999 millis")
        assert.deepStrictEqual(fake.busy, [a.id])
        yield* TestClock.adjust("1 millis")
      } else if (readsOn !== undefined) yield* TestClock.adjust(readsOn)
      yield* yields
      assert.deepStrictEqual(fake.busy, [])
      yield* Fiber.join(work)
      const { record } = job
      const charge = BigInt(prompt) + 10n * BigInt(completion)
      assert.deepInclude(record.summary.usage, { prompt, completion })
      assert.deepStrictEqual([...record.summary.notes], notes)
      const { spent } = yield* job.settled
      if (notes.includes("hold_exceeded")) return assert.isBelow(Number(spent), Number(charge))
      assert.strictEqual(spent, charge)
      assert.strictEqual(record.summary.cost, BigInt(prompt) + 5n * BigInt(completion))
    })
  })

  it.effect("pays for what it received if the gateway stops at the same time", () => {
    const fake = new ProviderFake().on(a, streams([content("12345")], "hang"))
    return running(fake, function* (job) {
      yield* Fiber.interrupt(yield* leaving(job))
      assert.deepStrictEqual(fake.busy, [])
      assert.strictEqual((yield* job.settled).spent, 100n + 50n)
    })
  })

  it.effect("before the provider's first event pays nothing", () => {
    const fake = new ProviderFake().on(a, hangs)
    return running(fake, function* ({ departure, ledger, org, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), ledger.balance(org)), { until: ({ held }) => held > 0n })
      departure.leave()
      yield* Fiber.join(work)
      assert.deepStrictEqual(yield* settled, { spent: 0n, charges: [] })
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  it.effect("between the first event and the first delta pays for the prompt and the reported usage", () =>
    Effect.forEach(
      [
        [[content("")], 100n],
        [[countedSoFar(7, 30, 30)], 7n + 300n]
      ] as const,
      ([events, charge]) => {
        const fake = new ProviderFake().on(a, streams(events, "hang"))
        return running(fake, function* ({ departure, record, settled, stream }) {
          const work = yield* Effect.fork(stream(priced(a)))
          yield* TestClock.adjust("1 second")
          departure.leave()
          yield* Fiber.join(work)
          assert.strictEqual((yield* settled).spent, charge)
          assert.strictEqual(record.summary.route?.id, a.id)
        })
      }
    )
  )

  it.effect("pays for what it received if it still has to read at the stream timeout", () => {
    const fake = new ProviderFake().on(a, streams([content("12345")], [content("67")], [content("unread")]))
    return running(fake, function* ({ departure, line, record, settled, sink, stream }) {
      let writes = 0
      const write: ChatSink["write"] = (events) =>
        Effect.zipRight(sink.write(events), ++writes > 1 ? Effect.never : Effect.void)
      const disconnectStalled = () => {
        departure.leave()
        return true
      }
      const work = yield* Effect.fork(stream(priced(a), { ...sink, write, disconnectStalled }))
      yield* TestClock.adjust("1 hour")
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(work)
      assert.strictEqual((yield* settled).spent, 100n + 70n)
      assert.deepInclude(yield* line, { events: [content("12345"), content("67")], end: undefined })
      assert.isUndefined(record.summary.code)
      assert.deepStrictEqual(record.attempts.list.map(Struct.get("outcome")), ["ok"])
      assert.deepStrictEqual(fake.busy, [])
    })
  })
})
