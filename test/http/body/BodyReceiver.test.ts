import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { Effect, Exit, Fiber, Option } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { BodyReceiver } from "../../../src/http/body/BodyReceiver.ts"
import * as EventLoop from "../../../src/services/runtime/EventLoop.ts"
import { assert, describe, it } from "../../harness/It.ts"

const mib = 1024 * 1024
const limit = 4 * mib
const [one, two] = [OrgId.make("one"), OrgId.make("two")]

const chunked = { "transfer-encoding": "chunked" }
const announcing = (bytes: number) => ({ "content-length": String(bytes) })

/** A request of which nothing has come yet. */
const arriving = (headers: IncomingMessage["headers"]) => {
  const request = new IncomingMessage(new Socket())
  Object.assign(request.headers, headers)
  return request
}

const send = (request: IncomingMessage, body: Buffer, chunkBytes = mib / 4) => {
  for (let at = 0; at < body.length; at += chunkBytes) request.push(body.subarray(at, at + chunkBytes))
  request.push(null)
}

const bytes = (length: number) => Buffer.alloc(length, "0123456789")

const turns = Effect.repeatN(EventLoop.yieldTurn, 5)

const passSeconds = (receiver: BodyReceiver, seconds: number) =>
  Effect.repeatN(Effect.zipRight(receiver.inspect, EventLoop.yieldTurn), seconds - 1)

/** Bodies of 48 MiB that were announced and of which so many bytes have come. */
const stalled = (receiver: BodyReceiver, org: OrgId, count: number, came: number) =>
  Effect.forEach(Array.from({ length: count }), () =>
    Effect.gen(function* () {
      const request = arriving(announcing(48 * mib))
      const fiber = yield* Effect.fork(receiver.body(request, org, Effect.void).receive(48 * mib))
      yield* turns
      request.push(bytes(came))
      yield* turns
      return { fiber, request }
    })
  )

describe("a request body", () => {
  for (const [what, length, headers, chunkBytes] of [
    ["that is empty", 0, announcing(0), 1],
    ["that is small", mib, announcing(mib), mib / 4],
    ["that is large", 2 * mib, announcing(2 * mib), mib / 4],
    ["that is small and does not say so", mib, chunked, mib / 4],
    ["that is large and does not say so", 2 * mib, chunked, mib / 4],
    ["that is as long as it may be", limit, chunked, mib / 4],
    ["that comes in small chunks", 100_000, chunked, 7]
  ] as const) {
    it.effect(`${what} is received whole`, function* () {
      const request = arriving(headers)
      const reading = yield* Effect.fork(new BodyReceiver().body(request, one, Effect.void).receive(limit))
      yield* turns
      send(request, bytes(length), chunkBytes)
      assert.isTrue((yield* Fiber.join(reading)).equals(bytes(length)))
    })
  }

  it("that has come before its endpoint reads it is received without waiting", () => {
    const request = arriving(announcing(1000))
    send(request, bytes(1000))
    request.complete = true
    const received = Effect.runSync(new BodyReceiver().body(request, one, Effect.void).receive(limit))
    assert.isTrue(received.equals(bytes(1000)))
  })

  for (const [what, headers, isComplete] of [
    ["says so", announcing(limit + 1), false],
    ["does not say so", chunked, false],
    ["has come", chunked, true]
  ] as const) {
    it.effect(`that is too long and ${what} is refused`, function* () {
      const request = arriving(headers)
      send(request, bytes(limit + 1))
      request.complete = isComplete
      const refusal = yield* Effect.flip(new BodyReceiver().body(request, one, Effect.void).receive(limit))
      assert.strictEqual(refusal._tag, "BodyTooLarge")
    })
  }

  it.effect("that is longer than a limit below 1 MiB is refused", function* () {
    const request = arriving(chunked)
    send(request, bytes(2_000))
    const refusal = yield* Effect.flip(new BodyReceiver().body(request, one, Effect.void).receive(1_000))
    assert.strictEqual(refusal._tag, "BodyTooLarge")
  })

  it.effect("stays unread while there is no memory for it, and is drained when it is no longer wanted", function* () {
    const receiver = new BodyReceiver()
    yield* stalled(receiver, one, 6, 2 * mib)
    const request = arriving(chunked)
    send(request, bytes(limit))
    const reading = yield* Effect.fork(receiver.body(request, one, Effect.void).receive(48 * mib))
    yield* turns
    assert.isFalse(request.readableFlowing)
    assert.isAbove(request.readableLength, 2 * mib)
    yield* Fiber.interrupt(reading)
    assert.isTrue(request.readableFlowing)
  })

  it.effect("whose connection ends early fails with BodyCutOff", function* () {
    const request = arriving(announcing(100))
    const reading = yield* Effect.fork(new BodyReceiver().body(request, one, Effect.void).receive(limit))
    yield* turns
    request.push("half")
    request.destroy()
    assert.strictEqual((yield* Effect.flip(Fiber.join(reading)))._tag, "BodyCutOff")
  })
})

describe("slow bodies", () => {
  for (const [what, came, seconds] of [
    ["a byte each", 1, 0],
    ["2 MiB each", 2 * mib, 8]
  ] as const) {
    it.effect(`use memory for what has come of them and not for their announced length: ${what}`, function* () {
      const receiver = new BodyReceiver()
      for (const org of [one, two]) yield* stalled(receiver, org, 12, came)
      const request = arriving(announcing(48 * mib))
      const reading = yield* Effect.fork(receiver.body(request, one, Effect.void).receive(48 * mib))
      send(request, bytes(48 * mib), mib)
      yield* turns
      if (seconds > 0) yield* passSeconds(receiver, seconds)
      assert.strictEqual((yield* Fiber.join(reading)).length, 48 * mib)
    })
  }

  it.effect("are refused once they bring less than 10 kB in ten seconds", function* () {
    const receiver = new BodyReceiver()
    const request = arriving(announcing(limit))
    const reading = yield* Effect.fork(receiver.body(request, one, Effect.void).receive(limit))
    yield* turns
    yield* passSeconds(receiver, 1)
    request.push(bytes(mib))
    yield* passSeconds(receiver, 10)
    for (let second = 0; second < 10; second++) {
      assert.isNull(reading.unsafePoll())
      request.push(bytes(900))
      yield* passSeconds(receiver, 1)
    }
    assert.strictEqual((yield* Effect.flip(Fiber.join(reading)))._tag, "BodyTooSlow")
  })

  it.effect("are received while they bring that much", function* () {
    const receiver = new BodyReceiver()
    const request = arriving(announcing(30_000))
    const reading = yield* Effect.fork(receiver.body(request, one, Effect.void).receive(limit))
    yield* turns
    for (let second = 0; second < 30; second++) {
      request.push(bytes(1000))
      yield* passSeconds(receiver, 1)
    }
    request.push(null)
    assert.strictEqual((yield* Fiber.join(reading)).length, 30_000)
  })

  it.effect("do not include bodies that wait for memory", function* () {
    const receiver = new BodyReceiver()
    for (let body = 0; body < 5; body++) {
      const request = arriving(announcing(48 * mib))
      const reading = yield* Effect.fork(receiver.body(request, one, Effect.void).receive(48 * mib))
      yield* turns
      send(request, bytes(48 * mib), mib)
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(reading)))
    }
    const late = arriving(announcing(48 * mib))
    const reading = yield* Effect.fork(receiver.body(late, one, Effect.void).receive(48 * mib))
    late.push(bytes(2 * mib))
    yield* turns
    yield* passSeconds(receiver, 15)
    assert.isNull(reading.unsafePoll())
    yield* Fiber.interrupt(reading)
  })
})

describe("the garbage of large bodies", () => {
  const receiverThatCounts = () => {
    let collections = 0
    return { receiver: new BodyReceiver(() => (collections += 1)), collections: () => collections }
  }

  it.effect("is collected twice when complete and incomplete bodies have been released", function* () {
    const { collections, receiver } = receiverThatCounts()
    const bodies = yield* Effect.forEach([true, false], (isComplete) =>
      Effect.gen(function* () {
        const request = arriving(announcing(40 * mib))
        const { receive, release } = receiver.body(request, one, Effect.void)
        const reading = yield* Effect.fork(receive(48 * mib))
        yield* turns
        if (isComplete) send(request, bytes(40 * mib), mib)
        else request.push(bytes(39 * mib))
        yield* turns
        request.destroy()
        yield* Fiber.await(reading)
        return { release }
      })
    )
    yield* passSeconds(receiver, 30)
    assert.strictEqual(collections(), 0, "all of it is still in use")
    for (const { release } of bodies) release()
    yield* passSeconds(receiver, 60)
    assert.strictEqual(collections(), 2)
  })

  it.effect("is left to the runtime where there is little of it", function* () {
    const { collections, receiver } = receiverThatCounts()
    for (let body = 0; body < 20; body++) {
      const request = arriving(announcing(mib))
      const { receive, release } = receiver.body(request, one, Effect.void)
      const reading = yield* Effect.fork(receive(limit))
      yield* turns
      send(request, bytes(mib))
      yield* Fiber.join(reading)
      release()
    }
    yield* passSeconds(receiver, 30)
    assert.strictEqual(collections(), 0)
  })

  it.effect("includes what a request loads beside its body, until it ends", function* () {
    const receiver = new BodyReceiver()
    const begin = Effect.fnUntraced(function* () {
      const request = arriving(announcing(mib))
      const body = receiver.body(request, one, Effect.void)
      const reading = yield* Effect.fork(body.receive(limit))
      yield* turns
      send(request, bytes(mib))
      yield* Fiber.join(reading)
      return body
    })
    const first = yield* begin()
    yield* first.reserveMore(100 * mib)
    yield* first.reserveMore(100 * mib)
    const second = yield* begin()
    const waiting = yield* Effect.fork(second.reserveMore(200 * mib))
    yield* turns
    assert.isNull(yield* Fiber.poll(waiting).pipe(Effect.map(Option.getOrNull)))
    first.release()
    yield* Fiber.join(waiting)
    second.release()
  })
})
