import { Effect, Exit, Fiber, Layer, TestClock } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { Route } from "../../../src/domain/Model.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { answers, hangs, ProviderFake, request, route } from "../../fakes/ProviderFake.ts"
import * as TokensFake from "../../fakes/TokensFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { openChat, priced } from "../chat/ChatBench.ts"

const [a, b, c] = [route("a"), route("b"), route("c")]
/** What "hi" is held as with so much output. */
const holdOf = (output: number) => 50n + BigInt(output) * 10n
const full = holdOf(8_192)
const least = holdOf(1_024)

const bench = Effect.fnUntraced(function* (credits: bigint) {
  const chat = yield* ChatCompletions
  const ledger = yield* Ledger
  const { books, org, record: first } = yield* openChat(credits)
  const { caller } = first.facts
  const blank = { surface: "chat", caller, rateLimit: 600, at: 0, startedAt: 0 } as const
  const ask = (to: Route, more: Partial<ChatRequest> = {}) => {
    const id = crypto.randomUUID()
    const record = new RequestRecord({ ...blank, id, requestId: id })
    const job = { model: priced(to), request: request({ maxTokens: 8_192, ...more }), record, canReduceHold: true }
    return Effect.map(Effect.fork(chat.complete(job)), (fiber) => ({ fiber, record }))
  }
  return { ask, books, ledger, org }
})

type Bench = Effect.Effect.Success<ReturnType<typeof bench>>

/** A chat on the route `a` that is held first and does not end. */
const running = (
  credits: bigint,
  body: (bench: Bench) => Effect.fn.Return<unknown, unknown>,
  { requestTimeoutSeconds = 290, fake = new ProviderFake() } = {}
) =>
  Effect.flatMap(bench(credits), Effect.fnUntraced(body)).pipe(
    Effect.provide(
      ChatCompletions.layer.pipe(
        Layer.provide(Layer.mock(ReferenceImages, {})),
        Layer.provideMerge(
          Layer.mergeAll(
            Layer.provide(ProviderRouter.layer({ requestTimeoutSeconds }), fake.on(a, hangs).layer),
            LedgerFake.layer,
            TokensFake.layer
          )
        )
      )
    )
  )

/** Undefined while it runs. */
const endOf = ({ fiber }: { readonly fiber: Fiber.RuntimeFiber<unknown, { readonly _tag: string }> }) =>
  Effect.map(fiber.poll, (polled) =>
    polled._tag === "None" ? undefined : Exit.match(polled.value, { onSuccess: () => "answered", onFailure: String })
  )
const isRefused = (end: string | undefined) => end?.includes("InsufficientCredits") === true

describe("a reduced hold", () => {
  it.effect("is a quarter of the balance if others are open, and at least the price of 1,024 output tokens", () =>
    running(full * 2n, function* ({ ask, ledger, org }) {
      yield* ask(a)
      yield* TestClock.adjust(0)
      assert.strictEqual((yield* ledger.balance(org)).held, full)
      const { record } = yield* ask(b)
      yield* TestClock.adjust(0)
      assert.strictEqual(record.summary.cap, Number(((full * 2n) / 4n - 50n) / 10n))
      const third = yield* ask(a, { messages: [{ role: "user", content: "x".repeat(35_000) }] })
      yield* TestClock.adjust(0)
      assert.strictEqual(third.record.summary.cap, 1_024)
    })
  )

  it.effect("waits a minute for others, then is refused", () =>
    running(full + least - 1n, function* ({ ask, books, org }) {
      yield* ask(a)
      yield* TestClock.adjust(0)
      const waiting = yield* ask(b)
      yield* TestClock.adjust("59 seconds")
      assert.isUndefined(yield* endOf(waiting))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(isRefused(yield* endOf(waiting)))
      assert.strictEqual(yield* books.openHolds(org), 1)
    })
  )

  it.effect("waits at most a quarter of the request timeout", () =>
    running(
      full,
      function* ({ ask }) {
        yield* ask(a)
        yield* TestClock.adjust(0)
        const waiting = yield* ask(b)
        yield* TestClock.adjust("9 seconds")
        assert.isUndefined(yield* endOf(waiting))
        yield* TestClock.adjust("2 seconds")
        assert.isTrue(isRefused(yield* endOf(waiting)))
      },
      { requestTimeoutSeconds: 40 }
    )
  )

  it.effect("is refused at once if the balance is too low even without others", () =>
    running(least, function* ({ ask }) {
      yield* ask(a, { maxTokens: 10 })
      yield* TestClock.adjust(0)
      const refused = yield* ask(b, { messages: [{ role: "user", content: "hi!" }] })
      yield* TestClock.adjust(0)
      assert.isTrue(isRefused(yield* endOf(refused)))
    })
  )

  it.effect("is placed first in, first out when credit is available", () => {
    const fake = new ProviderFake().on(b, answers("b", "1 second")).on(c, answers("c", "1 second"))
    return running(
      full,
      function* ({ ask, books, org }) {
        const first = yield* ask(a)
        yield* TestClock.adjust(0)
        const waiting = [yield* ask(b), yield* ask(c), yield* ask(b), yield* ask(c)]
        yield* TestClock.adjust("3 seconds")
        assert.deepStrictEqual(fake.calls, ["m@a"])
        yield* Fiber.interrupt(first.fiber)
        yield* TestClock.adjust("3 seconds")
        assert.deepStrictEqual(
          yield* Effect.forEach(waiting, endOf),
          waiting.map(() => "answered")
        )
        assert.deepStrictEqual(fake.calls, ["m@a", "m@b", "m@c", "m@b", "m@c"])
        assert.strictEqual(yield* books.openHolds(org), 0)
        assert.isTrue(yield* books.proved)
      },
      { fake }
    )
  })

  it.effect("is abandoned when its client disconnects or the gateway stops, and the next one continues", () => {
    const fake = new ProviderFake().on(c, answers("c", "1 second"))
    return running(
      full,
      function* ({ ask, books, org }) {
        const first = yield* ask(a)
        yield* TestClock.adjust(0)
        const [leaving, stopped, staying] = [yield* ask(b), yield* ask(b), yield* ask(c)]
        yield* TestClock.adjust("1 second")
        leaving.record.add({ type: "left" })
        yield* Fiber.interruptFork(stopped.fiber)
        yield* TestClock.adjust("1 second")
        assert.isTrue(isRefused(yield* endOf(leaving)))
        assert.include(yield* endOf(stopped), "interrupted")
        assert.isUndefined(yield* endOf(staying))
        yield* Fiber.interrupt(first.fiber)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* endOf(staying), "answered")
        assert.notInclude(fake.calls, "m@b")
        assert.strictEqual(yield* books.openHolds(org), 0)
      },
      { fake }
    )
  })

  it.effect("is refused at once if 64 others wait", () =>
    running(full, function* ({ ask }) {
      yield* ask(a)
      yield* TestClock.adjust(0)
      const waiting = yield* Effect.forEach(Array.from({ length: 65 }), () => ask(b))
      yield* TestClock.adjust("1 second")
      const ends = yield* Effect.forEach(waiting, endOf)
      assert.deepStrictEqual(
        ends.map((end) => end !== undefined),
        waiting.map((_, index) => index === 64)
      )
    })
  )
})
