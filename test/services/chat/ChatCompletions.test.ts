import { Deferred, Effect, Fiber, Struct, TestClock } from "effect"
import type { ChatSink } from "../../../src/services/chat/ChatStream.ts"
import {
  answer,
  answers,
  content,
  fails,
  failure,
  finish,
  hangs,
  ProviderFake,
  route,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { nano, priced, running } from "./ChatBench.ts"

const a = route("a")
const b = route("b")

describe("a chat that is not streamed", () => {
  it.effect("is charged by the provider's usage", () => {
    const fake = new ProviderFake().on(a, answers())
    return running(fake, function* ({ complete, record, settled }) {
      const result = yield* complete(priced(a))
      assert.deepInclude(result.usage, { prompt: 7, completion: 3 })
      assert.deepStrictEqual(yield* settled, { spent: 37n, charges: [37n] })
      assert.deepStrictEqual([...record.summary.notes], [])
    })
  })

  it.effect("is charged by the gateway's count when the provider reports no usage, or zero beside text", () => {
    const zeros = { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0 }
    return Effect.forEach([undefined, zeros], (reported) => {
      const fake = new ProviderFake().on(a, {
        ...hangs,
        complete: Effect.succeed({ ...answer("twelve chars"), usage: reported })
      })
      return running(fake, function* ({ complete, record, settled }) {
        yield* complete(priced(a))
        assert.strictEqual((yield* settled).spent, 100n + 12n * 10n)
        assert.deepStrictEqual([...record.summary.notes], ["usage_estimated"])
      })
    })
  })

  it.effect("never costs more than was held", () => {
    const greedy = { prompt: 90_000, completion: 9, cached: 0, cacheWrite: 0, reasoning: 0 }
    const fake = new ProviderFake().on(a, { ...hangs, complete: Effect.succeed({ ...answer("x"), usage: greedy }) })
    return running(fake, function* ({ complete, record, settled }) {
      yield* complete(priced(a), { maxTokens: 1 })
      const { spent } = yield* settled
      assert.isBelow(Number(spent), 90_000)
      assert.deepStrictEqual([...record.summary.notes], ["hold_exceeded"])
    })
  })

  it.effect("costs nothing when every route fails", () => {
    const fake = new ProviderFake().on(a, fails(failure("retry", 503))).on(b, fails(failure("retry", 500)))
    return running(fake, function* ({ complete, record, settled }) {
      const failed = yield* Effect.flip(complete(priced(a, b)))
      assert.deepInclude(failed, { _tag: "AllProvidersFailed", provider: "b", status: 500 })
      assert.deepStrictEqual(yield* settled, { spent: 0n, charges: [] })
      assert.deepStrictEqual(record.attempts.list.map(Struct.get("outcome")), ["retry", "retry"])
    })
  })

  it.effect("releases its hold when it is interrupted", () => {
    const fake = new ProviderFake().on(a, hangs)
    return running(fake, function* ({ complete, ledger, org, settled }) {
      const work = yield* Effect.fork(complete(priced(a)))
      yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), ledger.balance(org)), { until: ({ held }) => held > 0n })
      yield* Fiber.interrupt(work)
      assert.deepStrictEqual(yield* settled, { spent: 0n, charges: [] })
    })
  })

  it.effect("reaches no provider when the balance cannot cover the hold", () => {
    const fake = new ProviderFake()
    const dear = { ...priced(a), pricing: { ...priced(a).pricing, completion: nano(1000n) } }
    return running(fake, function* ({ complete, settled }) {
      const failed = yield* Effect.flip(complete(dear))
      assert.strictEqual(failed._tag, "InsufficientCredits")
      assert.deepStrictEqual(fake.calls, [])
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })
})

describe("a streamed chat", () => {
  it.effect("is complete and charged before it ends", () => {
    const fake = new ProviderFake().on(a, answers())
    return running(fake, function* ({ line, settled, stream }) {
      yield* stream(priced(a))
      assert.deepInclude(yield* line, { events: [content("hello"), finish, usage], end: "done 7+3" })
      assert.deepStrictEqual(yield* settled, { spent: 37n, charges: [37n] })
    })
  })

  it.effect("fails with an ordinary error before anything was sent", () => {
    const fake = new ProviderFake().on(a, fails(failure("retry", 503)))
    return running(fake, function* ({ line, settled, stream }) {
      const failed = yield* Effect.flip(stream(priced(a)))
      assert.strictEqual(failed._tag, "UpstreamFailed")
      assert.deepStrictEqual(yield* line, { open: 0, events: [], end: undefined })
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })

  it.effect("that breaks after output costs nothing and ends with an error", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], failure("network", undefined)))
    return running(fake, function* ({ line, record, settled, stream }) {
      yield* stream(priced(a, b))
      assert.deepInclude(yield* line, { events: [content("half")], end: "UpstreamFailed" })
      assert.strictEqual(record.summary.code, "stream_error")
      assert.deepStrictEqual(fake.calls, [a.id])
      assert.deepStrictEqual(yield* settled, { spent: 0n, charges: [] })
    })
  })

  it.effect("sends its head after 25 s of waiting while failover goes on", () => {
    const fake = new ProviderFake()
      .on(a, fails(failure("retry", 503), "20 seconds"))
      .on(b, answers("late", "20 seconds"))
    return running(fake, function* ({ line, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a, b)))
      yield* TestClock.adjust("24 seconds")
      assert.strictEqual((yield* line).open, 0)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* line, { open: 1, events: [], end: undefined })
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.join(work)
      assert.strictEqual((yield* line).end, "done 7+3")
      assert.strictEqual((yield* settled).spent, 37n)
    })
  })

  it.effect("ends with the actual failure when its head was sent early", () => {
    const fake = new ProviderFake()
      .on(a, fails(failure("retry", 503), "20 seconds"))
      .on(b, fails(failure("retry", 500), "20 seconds"))
    return running(fake, function* ({ line, record, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a, b)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(work)
      assert.deepStrictEqual(yield* line, { open: 1, events: [], end: "AllProvidersFailed" })
      assert.strictEqual(record.summary.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })

  it.effect("that fails with a defect ends once its head is sent", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], [content("more")]))
    return running(fake, function* ({ line, record, settled, sink, stream }) {
      let writes = 0
      const write: ChatSink["write"] = (events) =>
        Effect.suspend(() => (++writes > 1 ? Effect.die("a bug") : sink.write(events)))
      yield* stream(priced(a), { ...sink, write })
      assert.deepInclude(yield* line, { events: [content("half")], end: "UpstreamFailed" })
      assert.strictEqual(record.summary.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  it.effect("that breaks has released its hold when its client gets the error", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], failure("network", undefined)))
    return running(fake, function* ({ ledger, line, org, sink, stream }) {
      let heldAtEnd: bigint | undefined
      const fail: ChatSink["fail"] = (broken) =>
        Effect.flatMap(ledger.balance(org), ({ held }) => {
          heldAtEnd = held
          return sink.fail(broken)
        })
      yield* stream(priced(a), { ...sink, fail })
      assert.strictEqual(heldAtEnd, 0n)
      assert.strictEqual((yield* line).end, "UpstreamFailed")
    })
  })

  it.effect("whose end cannot be written is charged, and ends with an error", () => {
    const fake = new ProviderFake().on(a, answers())
    return running(fake, function* ({ line, record, settled, sink, stream }) {
      yield* stream(priced(a), { ...sink, finish: () => Effect.die("a bug") })
      assert.strictEqual((yield* line).end, "UpstreamFailed")
      assert.strictEqual(record.summary.code, "stream_error")
      assert.deepStrictEqual(yield* settled, { spent: 37n, charges: [37n] })
    })
  })

  it.effect("that is interrupted releases its hold and ends with an error", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], "hang"))
    return running(fake, function* ({ line, record, settled, stream, written }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* Deferred.await(written)
      yield* Fiber.interrupt(work)
      assert.strictEqual((yield* line).end, "Aborted")
      assert.strictEqual(record.summary.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })
})
