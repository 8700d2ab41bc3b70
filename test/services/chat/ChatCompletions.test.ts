import { Deferred, Effect, Exit, Fiber, Struct, TestClock } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { ChatModel } from "../../../src/domain/Model.ts"
import { ChatCompletions, type ChatSink } from "../../../src/services/chat/ChatCompletions.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import {
  answer,
  answers,
  content,
  fails,
  failure,
  finish,
  hangs,
  ProviderFake,
  request,
  route,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { chatsOver, makeSink, nano, openChat, priced } from "./ChatBench.ts"

const a = route("a")
const b = route("b")

const credits = 1_000_000n

/** One job on an account of its own, with what it left behind. */
const bench = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const ledger = yield* Ledger
  const { books, org, record } = yield* openChat(credits)
  const settled = Effect.gen(function* () {
    assert.strictEqual(yield* books.openHolds(org), 0)
    assert.isTrue(yield* books.proved)
    const spent = credits - (yield* ledger.balance(org)).balance
    assert.strictEqual(spent, record.charge)
    return { spent, charges: yield* books.charges(org) }
  })
  const { sink, ...seen } = yield* makeSink
  const complete = (sold: ChatModel, more: Partial<ChatRequest> = {}) =>
    chat.complete({ model: sold, request: request(more), record })
  const stream = (sold: ChatModel, into = sink) =>
    chat.stream({ model: sold, request: request({ stream: true }), record }, into)
  return { complete, stream, ledger, org, record, settled, sink, ...seen }
})

type Bench = Effect.Effect.Success<typeof bench>

/** Runs the body over a job on an account of its own, with these providers. */
const running = (fake: ProviderFake, body: (job: Bench) => Effect.fn.Return<unknown, unknown>) =>
  Effect.flatMap(bench, Effect.fnUntraced(body)).pipe(Effect.provide(chatsOver(fake)))

describe("a chat answered in one piece", () => {
  it.effect("is charged by the provider's usage", () => {
    const fake = new ProviderFake().on(a, answers())
    return running(fake, function* ({ complete, record, settled }) {
      const result = yield* complete(priced(a))
      assert.deepInclude(result.usage, { prompt: 7, completion: 3 })
      assert.deepStrictEqual(yield* settled, { spent: 37n, charges: [37n] })
      assert.deepStrictEqual([...record.notes], [])
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
        assert.deepStrictEqual([...record.notes], ["usage_estimated"])
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
      assert.deepStrictEqual([...record.notes], ["hold_exceeded"])
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
      assert.strictEqual(record.code, "stream_error")
      assert.deepStrictEqual(fake.calls, [a.id])
      assert.deepStrictEqual(yield* settled, { spent: 0n, charges: [] })
    })
  })

  it.effect("whose client leaves pays the prompt and what it received", () => {
    const fake = new ProviderFake().on(a, streams([content("12345")], "hang"))
    return running(fake, function* ({ departure, line, record, settled, stream, written }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* Deferred.await(written)
      departure.leave()
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(work)))
      assert.strictEqual((yield* settled).spent, 100n + 50n)
      assert.deepStrictEqual([...record.notes], ["usage_estimated"])
      assert.deepStrictEqual(fake.busy, [])
      assert.strictEqual((yield* line).end, undefined)
    })
  })

  it.effect("whose client leaves pays the prompt as the host has counted it", () => {
    const early = { prompt: 7, completion: 1, cached: 5, cacheWrite: 0, reasoning: 0 }
    const fake = new ProviderFake().on(a, streams([{ type: "usage", usage: early }, content("12345")], "hang"))
    return running(fake, function* ({ departure, record, settled, stream, written }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* Deferred.await(written)
      departure.leave()
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(work)))
      assert.strictEqual((yield* settled).spent, 7n + 50n)
      assert.deepInclude(record.usage, { prompt: 7, cached: 5, completion: 5 })
    })
  })

  it.effect("whose client has yet to read when its time is over pays as one that leaves", () => {
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
      yield* Fiber.join(work)
      assert.strictEqual((yield* settled).spent, 100n + 70n)
      assert.deepInclude(yield* line, { events: [content("12345"), content("67")], end: undefined })
      assert.isUndefined(record.code)
      assert.deepStrictEqual(record.attempts.list.map(Struct.get("outcome")), ["ok"])
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  it.effect("whose client leaves before the provider's first event pays nothing", () => {
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

  it.effect("whose client leaves between the first event and the first delta pays the prompt", () => {
    const fake = new ProviderFake().on(a, streams([content("")], "hang"))
    return running(fake, function* ({ departure, record, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* TestClock.adjust("1 second")
      departure.leave()
      yield* Fiber.join(work)
      assert.strictEqual((yield* settled).spent, 100n)
      assert.strictEqual(record.route?.id, a.id)
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

  it.effect("ends with the true failure when its head went out early", () => {
    const fake = new ProviderFake()
      .on(a, fails(failure("retry", 503), "20 seconds"))
      .on(b, fails(failure("retry", 500), "20 seconds"))
    return running(fake, function* ({ line, record, settled, stream }) {
      const work = yield* Effect.fork(stream(priced(a, b)))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(work)
      assert.deepStrictEqual(yield* line, { open: 1, events: [], end: "AllProvidersFailed" })
      assert.strictEqual(record.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })

  it.effect("that fails by a defect is ended once its head is out", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], [content("more")]))
    return running(fake, function* ({ line, record, settled, sink, stream }) {
      let writes = 0
      const write: ChatSink["write"] = (events) =>
        Effect.suspend(() => (++writes > 1 ? Effect.die("a bug") : sink.write(events)))
      yield* stream(priced(a), { ...sink, write })
      assert.deepInclude(yield* line, { events: [content("half")], end: "UpstreamFailed" })
      assert.strictEqual(record.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  it.effect("that is interrupted releases its hold and ends with an error", () => {
    const fake = new ProviderFake().on(a, streams([content("half")], "hang"))
    return running(fake, function* ({ line, record, settled, stream, written }) {
      const work = yield* Effect.fork(stream(priced(a)))
      yield* Deferred.await(written)
      yield* Fiber.interrupt(work)
      assert.strictEqual((yield* line).end, "Aborted")
      assert.strictEqual(record.code, "stream_error")
      assert.strictEqual((yield* settled).spent, 0n)
    })
  })
})
