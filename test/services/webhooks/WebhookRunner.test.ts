import { Clock, Deferred, Duration, Effect, Exit, Fiber, Scope, TestClock } from "effect"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import type { DeliveryQueue, Leased, Outcome, Try } from "../../../src/services/webhooks/WebhookDelivery.ts"
import { makeRunner, type Send } from "../../../src/services/webhooks/WebhookDelivery.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, describe, it } from "../../harness/It.ts"

const leasedOf = (id: string, destination = "whe_1"): Leased => ({
  id,
  eventId: `evt_${id}`,
  orgId: "org_1",
  endpointId: destination,
  url: "https://hooks.example",
  type: "video.completed",
  data: {},
  createdAt: new Date(0),
  tries: 0,
  lease: id,
  destination,
  secret: "whsec_"
})

/** Deliveries in memory, on the test's clock. */
const memoryQueue = (...deliveries: ReadonlyArray<Leased>) => {
  const due = new Map(deliveries.map((leased) => [leased.id, { leased, at: 0 }]))
  const ends: Array<string> = []
  const rests: Array<number> = []
  const slowDestinations = new Set<string>()
  const setPace = ({ destination }: Leased, { isSlow }: Outcome) =>
    isSlow ? slowDestinations.add(destination) : slowDestinations.delete(destination)
  const end = (name: string) => (leased: Leased, outcome: Outcome) =>
    Effect.sync(() => {
      setPace(leased, outcome)
      due.delete(leased.id)
      ends.push(`${name} ${leased.id}`)
    })
  const queue: DeliveryQueue = {
    claim: ({ busyDestinations, isSlow, limit }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const free = [...due.values()].filter(
          ({ at, leased: { destination } }) =>
            at <= now && !busyDestinations.includes(destination) && slowDestinations.has(destination) === isSlow
        )
        const claimed = free.slice(0, limit)
        for (const one of claimed) one.at = Infinity
        return claimed.map(({ leased }) => leased)
      }),
    deliver: end("delivered"),
    disable: end("disabled"),
    fail: (leased, outcome, retryMs) =>
      retryMs === undefined
        ? end("failed")(leased, outcome)
        : Effect.map(Clock.currentTimeMillis, (now) => {
            setPace(leased, outcome)
            rests.push(retryMs / 1000)
            due.set(leased.id, { leased: { ...leased, tries: leased.tries + 1 }, at: now + retryMs })
          }),
    release: (leased) => Effect.sync(() => ends.push(`released ${leased.id}`))
  }
  return { queue, ends, rests, slowDestinations }
}

const failing = (status: number): Try => ({ status, failure: `status ${status}` })
const delivered: Try = { status: 204, failure: undefined }

const lookEverySeconds = 600
const timings = complete({ findDeliveriesEvery: Duration.seconds(lookEverySeconds) })

/** When each try of a delivery was made, in seconds, until the runner has let it go. */
const triesOf = Effect.fnUntraced(function* (answer: (tries: number) => Try) {
  const at: Array<number> = []
  const send: Send = ({ tries }) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      at.push(now / 1000)
      return answer(tries)
    })
  const { ends, queue, rests } = memoryQueue(leasedOf("1"))
  yield* Effect.provideService(makeRunner(queue, send), Timings, timings)
  for (let hours = 0; hours < 48 && ends.length === 0; hours++) yield* TestClock.adjust("1 hour")
  return { at, ends, rests }
})

describe("the delivery of a webhook", () => {
  it.scoped("is tried eight times within a day, at growing distances, and then fails", function* () {
    const { at, ends, rests } = yield* triesOf(() => failing(503))
    assert.deepStrictEqual(ends, ["failed 1"])
    assert.lengthOf(at, 8)
    const longest = [5, 60, 300, 1_800, 7_200, 21_600, 54_000]
    assert.lengthOf(rests, longest.length)
    for (const [index, rest] of rests.entries()) {
      const most = longest[index] ?? 0
      assert.isTrue(rest >= most * 0.8 && rest <= most, `${rest} of ${most}`)
      const waited = (at[index + 1] ?? 0) - (at[index] ?? 0)
      assert.isTrue(waited >= rest && waited <= rest + lookEverySeconds, `${waited} for ${rest}`)
    }
    assert.isBelow(at.at(-1) ?? 0, 86_400)
  })

  it.scoped("ends with the first try that succeeds", function* () {
    const { at, ends } = yield* triesOf((tries) => (tries < 2 ? failing(500) : delivered))
    assert.deepStrictEqual([ends, at.length], [["delivered 1"], 3])
  })

  it.scoped("ends with a 410", function* () {
    const { at, ends } = yield* triesOf(() => failing(410))
    assert.deepStrictEqual([ends, at.length], [["disabled 1"], 1])
  })

  it.scoped("is tried again after a redirect, a refused address or no answer at all", function* () {
    const answers = [failing(302), failing(404), { status: undefined, failure: "refused: 10.0.0.1 is private" }]
    const { at, ends } = yield* triesOf((tries) => answers[tries] ?? delivered)
    assert.deepStrictEqual([ends, at.length], [["delivered 1"], 4])
  })

  it.scoped("waits for no destination that does not answer", function* () {
    const dead = ["1", "2", "3"].map((id) => leasedOf(id, "dead"))
    const { ends, queue } = memoryQueue(...dead, leasedOf("4", "alive"))
    yield* makeRunner(queue, ({ destination }) => (destination === "dead" ? Effect.never : Effect.succeed(delivered)))
    yield* TestClock.adjust("1 second")
    assert.deepStrictEqual(ends, ["delivered 4"])
  })

  it.scoped("marks its destination as slow after more than 5 seconds, until a faster try", function* () {
    const { ends, queue, slowDestinations } = memoryQueue(leasedOf("1"))
    const seconds = [15, 6, 1]
    const send: Send = ({ tries }) => Effect.delay(Effect.succeed(failing(500)), `${seconds[tries] ?? 1} seconds`)
    yield* Effect.provideService(makeRunner(queue, send), Timings, timings)
    const paces: Array<boolean> = []
    for (const wait of ["15 seconds", "610 seconds", "610 seconds"] as const) {
      yield* TestClock.adjust(wait)
      paces.push(slowDestinations.has("whe_1"))
    }
    assert.deepStrictEqual([paces, ends], [[true, true, false], []])
  })

  it.effect("gives its lease up when the gateway stops", function* () {
    const scope = yield* Scope.make()
    const { ends, queue } = memoryQueue(leasedOf("1"))
    const sending = yield* Deferred.make<void>()
    const send: Send = () => Effect.zipRight(Deferred.succeed(sending, undefined), Effect.never)
    yield* Scope.extend(makeRunner(queue, send), scope)
    yield* Deferred.await(sending)
    yield* Fiber.join(yield* Effect.fork(Scope.close(scope, Exit.void)))
    assert.deepStrictEqual(ends, ["released 1"])
  })
})
