import { Deferred, Effect, Exit, Fiber, Layer, Option } from "effect"
import { InsufficientCredits } from "../../../src/domain/Failure.ts"
import type { Hold } from "../../../src/domain/Hold.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { ChatTask } from "../../../src/services/chat/ChatCharging.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { TokenCounter } from "../../../src/services/chat/TokenCounter.ts"
import type { ReductionTerms } from "../../../src/services/ledger/HoldPlacement.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { monotonicMillis } from "../../../src/services/runtime/System.ts"
import { answer, answers, hangs, ProviderFake, request, route, type Step } from "../../fakes/ProviderFake.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, lock } from "../../harness/database/Money.ts"
import { account, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"
import { makeSink, priced } from "../chat/ChatBench.ts"

const callers: ReadonlyArray<readonly [string, typeof Effect.interruptible]> = [
  ["an interruptible", Effect.interruptible],
  ["an uninterruptible", Effect.uninterruptible]
]

/** A key with a limit of tokens, and what is left of it and of the organization's money. */
const customer = Effect.fnUntraced(function* (credits: bigint = 10n * one) {
  const opened = yield* account(credits)
  const { bench, key, ledger, org, sql } = opened
  const state = Effect.gen(function* () {
    const [window] = yield* sql<{ readonly used: string }>`SELECT used FROM token_windows WHERE key_id = ${key}`
    const { balance, held } = yield* ledger.balance(org)
    const open = yield* bench.openHolds(org)
    assert.isTrue(yield* bench.proved)
    return { tokens: Number(window?.used ?? 0), spent: credits - balance, held, open }
  })
  const wanted = { org, key, upTo: one, tokens: { limit: 100_000, amount: 500 } }
  return { ...opened, credits, wanted, state }
})

/** A thousand tokens of output for one USD. */
const fit: ReductionTerms = {
  price: { prompt: 0n, promptTokens: 100, outputToken: 1_000n * one, cap: 20_000 },
  waitMillis: 60_000,
  isAbandoned: () => false
}

const untouched = { tokens: 0, spent: 0n, held: 0n, open: 0 }

withLayer(ledgers)("a hold", (it) => {
  const endings: ReadonlyArray<readonly [what: string, use: (hold: Hold) => Effect.Effect<unknown, Error>]> = [
    ["succeeds without a charge", () => Effect.void],
    ["fails", () => Effect.fail(new Error("refused"))],
    ["has a defect", () => Effect.die("a bug")],
    [
      "cannot even begin",
      () => {
        throw new Error("a bug")
      }
    ],
    ["interrupts itself", () => Effect.interrupt]
  ]
  for (const [caller, as] of callers) {
    it.effect.each(endings)(`is released where its use %s, in ${caller} fiber`, function* ([, use]) {
      const { ledger, org, state, wanted } = yield* customer()
      let seen: unknown
      const exit = yield* ledger
        .withHold(wanted, (hold) =>
          Effect.zipRight(
            Effect.map(ledger.balance(org), ({ held }) => (seen = held)),
            Effect.suspend(() => use(hold))
          )
        )
        .pipe(as, Effect.exit)
      assert.strictEqual(seen, one)
      assert.deepStrictEqual(Exit.isSuccess(exit), use === endings[0]?.[1])
      assert.deepStrictEqual(yield* state, untouched)
    })

    it.effect(`is settled once, and not released, by ${caller} fiber`, function* () {
      const { ledger, state, wanted } = yield* customer()
      const settled = yield* as(ledger.withHold(wanted, (hold) => ledger.settle(hold, NanoUsd(7n), { usedTokens: 20 })))
      assert.deepInclude(settled, { charged: NanoUsd(7n), wasReleased: false })
      assert.deepStrictEqual(yield* state, { tokens: 20, spent: 7n, held: 0n, open: 0 })
    })

    it.effect(`is charged where its use fails after the settlement, in ${caller} fiber`, function* () {
      const { ledger, state, wanted } = yield* customer()
      const exit = yield* ledger
        .withHold(wanted, (hold) =>
          Effect.zipRight(ledger.settle(hold, NanoUsd(7n), { usedTokens: 20 }), Effect.die("a bug"))
        )
        .pipe(as, Effect.exit)
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(yield* state, { tokens: 20, spent: 7n, held: 0n, open: 0 })
    })

    it.scoped(`is placed and released where ${caller} fiber is interrupted while it is placed`, function* () {
      const { ledger, org, sql, state, wanted } = yield* customer()
      const { unlock } = yield* lock(org)
      let isUsed = false
      const work = yield* ledger
        .withHold(wanted, () => Effect.interruptible(Effect.sync(() => (isUsed = true))))
        .pipe(as, Effect.fork)
      yield* Effect.sleep("200 millis")
      yield* Fiber.interruptFork(work)
      yield* Effect.sleep("100 millis")
      assert.isTrue(Option.isNone(yield* work.poll))
      yield* unlock
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(work)))
      assert.isFalse(isUsed)
      assert.lengthOf(yield* sql`SELECT id FROM all_holds WHERE org_id = ${org} AND state = 'released'`, 1)
      assert.deepStrictEqual(yield* state, untouched)
    })
  }

  for (const [caller, as] of callers) {
    it.effect(`that waits for others is given up by ${caller} fiber that is interrupted`, function* () {
      const { ledger, org, key, state, wanted } = yield* customer()
      const others = yield* Holds.admit(ledger, { org, key, upTo: NanoUsd(10n * one) })
      const waiting = yield* Effect.fork(as(ledger.withHold({ ...wanted, reduction: fit }, () => Effect.void)))
      yield* Effect.sleep("600 millis")
      assert.isTrue(Option.isNone(yield* waiting.poll))
      yield* Fiber.interrupt(waiting)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(waiting)))
      assert.deepStrictEqual(yield* state, { tokens: 0, spent: 0n, held: 10n * one, open: 1 })
      yield* Holds.release(ledger, others)
      assert.deepStrictEqual(yield* state, untouched)
    })
  }

  it.effect("that waits for others reserves the tokens of its reduced cap, and returns them", function* () {
    const { ledger, org, key, state, wanted } = yield* customer()
    const others = yield* Holds.admit(ledger, { org, key, upTo: NanoUsd(10n * one) })
    const most = NanoUsd(20n * one)
    const waiting = yield* Effect.fork(
      ledger.withHold({ ...wanted, upTo: most, reduction: fit }, (hold) => Effect.map(state, (now) => ({ hold, now })))
    )
    yield* Effect.sleep("300 millis")
    yield* Holds.release(ledger, others)
    const { hold, now } = yield* Fiber.join(waiting)
    // Alone, and half of what is free.
    const [amount, cap] = [NanoUsd(5n * one), 5_000]
    assert.deepInclude(hold, { amount, cap })
    assert.deepStrictEqual(now, { tokens: 100 + cap, spent: 0n, held: amount, open: 1 })
    assert.deepStrictEqual(yield* state, untouched)
  })

  it.effect("that is refused does not run its use", function* () {
    const { ledger, state, wanted } = yield* customer()
    const refused = yield* Effect.flip(
      ledger.withHold({ ...wanted, upTo: NanoUsd(11n * one) }, () => Effect.die("it has no hold"))
    )
    assert.deepStrictEqual(refused, new InsufficientCredits({ needed: NanoUsd(11n * one), available: 10n * one }))
    assert.deepStrictEqual(yield* state, untouched)
  })
})

const a = route("a")
const usage = { prompt: 7, completion: 3, cached: 0, cacheWrite: 0, reasoning: 0 }
const uncounted: Step = {
  complete: Effect.succeed({ ...answer("12345"), usage: undefined }),
  open: Effect.void,
  pulls: [[{ type: "content", text: "12345" }], [{ type: "finish", reason: "stop" }]]
}

/** A place where a test keeps a request, uninterruptibly, until it has been interrupted. */
const gate = Effect.gen(function* () {
  const reached = yield* Deferred.make<void>()
  const opened = yield* Deferred.make<void>()
  return {
    pass: Effect.zipRight(Deferred.succeed(reached, undefined), Deferred.await(opened)),
    reached: Deferred.await(reached),
    open: Deferred.succeed(opened, undefined)
  }
})

type Stage = FailpointName | "measuring" | "routing"

/** A chat that is interrupted at the stage, in one piece or as a stream. */
const interruptChat = Effect.fnUntraced(function* (stage: Stage, as: typeof Effect.interruptible, isStream: boolean) {
  const { ids, key, org, state } = yield* customer()
  const { open, pass, reached } = yield* gate
  const passAt = (name: Stage) => (name === stage ? Effect.asVoid(pass) : Effect.void)
  const fake = new ProviderFake().on(a, stage === "routing" ? hangs : stage === "measuring" ? uncounted : answers())
  const tokens = TokenCounter.of({
    count: (text) => Effect.as(passAt("measuring"), text.length),
    prompt: () => Effect.succeed(100)
  })
  const chats = ChatCompletions.layer.pipe(
    Layer.provide(Layer.mock(ReferenceImages, {})),
    Layer.provide(Layer.provide(ProviderRouter.layer(), fake.layer)),
    Layer.provide(Layer.succeed(TokenCounter, tokens)),
    Layer.provide(Layer.succeed(Failpoint, { reach: passAt }))
  )
  const id = ids.uuid()
  const caller = { key, org, scopes: undefined, rpm: undefined, tpm: 100_000 }
  const record = new RequestRecord({
    id,
    requestId: id,
    surface: "chat",
    caller,
    rateLimit: 600,
    at: Date.now(),
    startedAt: yield* monotonicMillis
  })
  const task: ChatTask = {
    model: priced(a),
    request: request({ stream: isStream }),
    record
  }
  return yield* Effect.gen(function* () {
    const chat = yield* ChatCompletions
    const { line, sink } = yield* makeSink
    let isHandedOver = false
    const handOver = Effect.sync(() => {
      isHandedOver = true
    })
    const chatting = isStream ? chat.stream(task, sink) : chat.complete(task)
    const work = yield* Effect.fork(as(Effect.zipRight(chatting, handOver)))
    yield* stage === "routing"
      ? eventually(
          Effect.sync(() => fake.busy),
          ({ length }) => length > 0
        )
      : reached
    yield* Fiber.interruptFork(work)
    yield* Effect.yieldNow()
    yield* open
    const exit = yield* Fiber.await(work)
    assert.deepStrictEqual(fake.busy, [])
    const { end } = yield* line
    return {
      calls: fake.calls.length,
      end,
      exit,
      isHandedOver,
      hold: record.summary.hold,
      id,
      record,
      state: yield* state
    }
  }).pipe(Effect.provide(chats))
})

withLayer(ledgers)("a chat that is interrupted", (it) => {
  for (const [caller, as] of callers) {
    for (const isStream of [false, true]) {
      // A fiber that can be interrupted ends with its interruption, after the charge.
      const handsOver = isStream || as === Effect.uninterruptible
      describe(`in ${caller} fiber, ${isStream ? "as a stream" : "in one piece"}`, () => {
        it.effect("just after its hold was placed: it is released, and no provider is called", function* () {
          const { calls, exit, hold, id, state } = yield* interruptChat("after_hold", as, isStream)
          assert.isTrue(Exit.isInterrupted(exit))
          assert.deepStrictEqual({ calls, hold }, { calls: 0, hold: id })
          assert.deepStrictEqual(state, untouched)
        })

        it.effect("while a provider is called: its hold is released, with its tokens", function* () {
          const { exit, state } = yield* interruptChat("routing", as, isStream)
          assert.isTrue(Exit.isInterrupted(exit))
          assert.deepStrictEqual(state, untouched)
        })

        it.effect("while its usage is counted: the answer is charged", function* () {
          const { end, isHandedOver, state } = yield* interruptChat("measuring", as, isStream)
          const [prompt, completion] = [100, 5]
          assert.deepStrictEqual(state, { tokens: prompt + completion, spent: 150n, held: 0n, open: 0 })
          assert.strictEqual(isStream ? end?.startsWith("done") : isHandedOver, handsOver)
        })

        for (const stage of ["before_settle", "after_settle"] as const) {
          it.effect(
            `${stage === "before_settle" ? "before" : "after"} its settlement: it is charged once`,
            function* () {
              const { end, isHandedOver, record, state } = yield* interruptChat(stage, as, isStream)
              const tokens = usage.prompt + usage.completion
              assert.deepStrictEqual(state, { tokens, spent: 37n, held: 0n, open: 0 })
              assert.strictEqual<bigint>(record.summary.charge, 37n)
              assert.strictEqual(isStream ? end?.startsWith("done") : isHandedOver, handsOver)
            }
          )
        }
      })
    }
  }
})
