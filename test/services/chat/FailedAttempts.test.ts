import { Deferred, Effect, Fiber, TestClock } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { RequestRecord } from "../../../src/services/requests/RequestRecord.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import {
  answers,
  content,
  fails,
  failure,
  finish,
  ProviderFake,
  type Pull,
  request,
  route,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { chatsOver, makeSink, nano, openChat, priced } from "./ChatBench.ts"

const prices = { cachedPrompt: undefined, cacheWrite: undefined, longContext: undefined }

/** To the operator a prompt token costs 2 nano-dollars, a completion token 20; to the customer half of it. */
const cost = { ...prices, prompt: nano(2n), completion: nano(20n) }
const a = route("a", { cost })
const b = route("b", { cost })
const free = route("free")
const counted = (prompt: number, completion: number) => ({ prompt, completion, cached: 0, cacheWrite: 0, reasoning: 0 })
const reports = (prompt: number, completion: number) => ({ type: "usage" as const, usage: counted(prompt, completion) })
const outage = failure("retry", 503)
/** An answer that was refused after its host had counted 5 and 2 tokens. */
const refused: ProviderFailure = failure("retry", 200, { spent: counted(5, 2) })
const refusedCost = 5n * 2n + 2n * 20n
/** What the fake's usual answer of 7 and 3 tokens costs the operator, and the customer. */
const answerCost = 7n * 2n + 3n * 20n
const answerCharge = 37n

const running = (fake: ProviderFake) => Effect.provide(chatsOver(fake))

const recorded = Effect.map(openChat(1_000_000n), ({ record }) => record)

/** What the log has of money: each try's cost, the answer's, and the charge. */
const costsOf = ({ summary: { attempts, charge, cost } }: RequestRecord) => {
  return { tries: attempts.list.map((one) => one.cost), cost, charge }
}

const job = (record: RequestRecord, routes: ReadonlyArray<Route>, stream: boolean) => {
  return { model: priced(...routes), request: request({ stream }), record }
}

const streamed = Effect.fnUntraced(function* (routes: ReadonlyArray<Route>) {
  const record = yield* recorded
  const { sink } = yield* makeSink
  const chat = yield* ChatCompletions
  yield* Effect.ignore(chat.stream(job(record, routes, true), sink))
  return costsOf(record)
})

describe("the cost of a stream that breaks after output", () => {
  const broken: ReadonlyArray<readonly [string, ReadonlyArray<Pull>, bigint]> = [
    [
      "is the gateway's count where nothing was reported",
      [[content("12345")], [content("678")], outage],
      100n * 2n + 8n * 20n
    ],
    [
      "is the reported prompt and the output that was sent",
      [[reports(7, 0), content("12345")], outage],
      7n * 2n + 5n * 20n
    ],
    ["is what was reported last", [[content("12345")], [reports(9, 4)], outage], 9n * 2n + 4n * 20n],
    ["is the gateway's count where it falls silent", [[content("12")], failure("timeout", 200)], 100n * 2n + 2n * 20n]
  ]
  for (const [what, pulls, expected] of broken) {
    it.effect(what, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* streamed([a, b]), { tries: [expected], cost: undefined, charge: 0n })
      }).pipe(running(new ProviderFake().on(a, streams(...pulls))))
    )
  }

  it.effect("is unknown if the route has no cost", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* streamed([free]), { tries: [undefined], cost: undefined, charge: 0n })
    }).pipe(running(new ProviderFake().on(free, streams([content("12345")], outage))))
  )

  it.effect("is that of the sent output if the gateway ends it", () =>
    Effect.gen(function* () {
      const record = yield* recorded
      const { sink, written } = yield* makeSink
      const chat = yield* ChatCompletions
      const work = yield* Effect.fork(chat.stream(job(record, [a], true), sink))
      yield* Deferred.await(written)
      yield* Fiber.interrupt(work)
      assert.deepStrictEqual(costsOf(record), { tries: [100n * 2n + 4n * 20n], cost: undefined, charge: 0n })
    }).pipe(running(new ProviderFake().on(a, streams([content("half")], "hang"))))
  )
})

describe("the cost of a stream", () => {
  it.effect("is counted once when it is complete", () =>
    Effect.gen(function* () {
      const whole = { tries: [undefined], cost: answerCost, charge: answerCharge }
      assert.deepStrictEqual(yield* streamed([a]), whole)
    }).pipe(running(new ProviderFake().on(a, streams([content("x")], [finish, usage]))))
  )

  it.effect("is counted once when its client disconnects and pays for it", () =>
    Effect.gen(function* () {
      const record = yield* recorded
      const { departure, sink, written } = yield* makeSink
      const chat = yield* ChatCompletions
      const work = yield* Effect.fork(chat.stream(job(record, [a], true), sink))
      yield* Deferred.await(written)
      departure.leave()
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(work)
      assert.deepStrictEqual(costsOf(record), { tries: [undefined], cost: 240n, charge: 120n })
    }).pipe(running(new ProviderFake().on(a, streams([content("12")], "hang"))))
  )
})

describe("an attempt that fails before any output", () => {
  const moved = { tries: [refusedCost, undefined], cost: answerCost, charge: answerCharge }

  it.effect("costs the operator the reported usage, and only the next answer is charged", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* streamed([a, b]), moved)
    }).pipe(running(new ProviderFake().on(a, streams([content(""), reports(5, 2)], outage))))
  )

  it.effect("costs the operator the reported usage of a refused answer, in JSON and in streams", () =>
    Effect.gen(function* () {
      const record = yield* recorded
      const chat = yield* ChatCompletions
      yield* chat.complete(job(record, [a, b], false))
      assert.deepStrictEqual(costsOf(record), moved)
      assert.deepStrictEqual(yield* streamed([a, b]), moved)
    }).pipe(running(new ProviderFake().on(a, fails(refused))))
  )

  it.effect("costs the operator no more than the request allows", () =>
    Effect.gen(function* () {
      const most = 100_000n + 4_096n
      const { tries } = yield* streamed([a, b])
      assert.deepStrictEqual(tries, [most * 2n + most * 20n, undefined])
    }).pipe(running(new ProviderFake().on(a, fails(failure("retry", 200, { spent: counted(1e300, 1e300) })))))
  )

  it.effect("costs the operator the reported usage when no other route answers", () =>
    Effect.gen(function* () {
      const expected = { tries: [refusedCost, undefined], cost: undefined, charge: 0n }
      assert.deepStrictEqual(yield* streamed([a, b]), expected)
    }).pipe(running(new ProviderFake().on(a, fails(refused)).on(b, fails(outage))))
  )

  it.effect("costs nothing when no usage was reported", () =>
    Effect.gen(function* () {
      const expected = { tries: [undefined, undefined], cost: answerCost, charge: answerCharge }
      assert.deepStrictEqual(yield* streamed([a, b]), expected)
    }).pipe(running(new ProviderFake().on(a, streams([content("")], outage)).on(b, answers())))
  )
})
