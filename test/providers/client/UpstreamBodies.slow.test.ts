import { createHash } from "node:crypto"
import type { Socket } from "node:net"
import { Deferred, Effect, Exit, Fiber, Option, Scope } from "effect"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import { Base64Field, type ByteChunks, jsonChunks } from "../../../src/services/media/Base64.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { makeWriter } from "../Backpressure.ts"
import { check, drained, listen, post, pull } from "./Upstreams.ts"

const MiB = 1024 * 1024

describe("a streamed answer", () => {
  check("a stream's head comes before its body, its bytes as they come", function* (fake) {
    const upstream = yield* Upstream
    const gate = yield* Deferred.make<void>()
    const second = yield* Deferred.make<void>()
    yield* fake.script(Fake.sse(Deferred.await(gate), "one", Deferred.await(second), "two"))
    const stream = yield* upstream.open(post(fake.url))
    assert.deepStrictEqual([stream.status, stream.headers["content-type"]], [200, "text/event-stream"])
    const text = Effect.map(pull(stream), (chunks) => Buffer.concat(chunks).toString())
    yield* Deferred.succeed(gate, undefined)
    assert.strictEqual(yield* text, "one")
    yield* Deferred.succeed(second, undefined)
    assert.strictEqual(yield* text, "two")
    assert.deepStrictEqual(yield* Effect.flip(pull(stream)), Option.none())
    assert.deepStrictEqual(yield* Effect.flip(pull(stream)), Option.none(), "an end stays the end")
  })

  check("a stream cut in the middle gives what came, then a network failure", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.sse("half of it", Fake.cut))
    const { bytes, failure } = yield* drained(yield* upstream.open(post(fake.url)))
    assert.deepStrictEqual([bytes, failure?.class, failure?.status, failure?.isUnsent], [10, "network", 200, false])
  })

  check("silence inside a stream is a timeout, but a comment now and then is no silence", function* (fake) {
    const upstream = yield* Upstream
    const comments = Array.from({ length: 12 }, () => [Effect.sleep("250 millis"), ": still here\n"]).flat()
    yield* fake.script(Fake.sse(...comments), Fake.sse("one", Effect.never))
    const [talking, silent] = yield* Effect.all([upstream.open(post(fake.url)), upstream.open(post(fake.url))])
    const [alive, dead] = yield* Effect.all([drained(talking), drained(silent)], { concurrency: 2 })
    assert.deepStrictEqual(alive, { bytes: 12 * 13, failure: undefined })
    assert.deepStrictEqual([dead.bytes, dead.failure?.class, dead.failure?.status], [3, "timeout", 200])
  })

  check("a reader that does not read holds up the host, and is no silence of the host's", function* (fake) {
    const upstream = yield* Upstream
    const total = 128 * 1024 * 1024
    const { reply, stalled, written } = makeWriter(Buffer.alloc(64 * 1024, "x"), total)
    yield* fake.script(reply)
    const stream = yield* upstream.open(post(fake.url))
    yield* pull(stream)
    // Twice the idle timeout, long enough to transfer everything.
    yield* stalled(2_000)
    assert.isBelow(written(), total / 2)
    const { failure } = yield* drained(stream)
    assert.isUndefined(failure)
    assert.strictEqual(written(), total)
  })

  check("a host that says nothing while nobody reads is not silent", function* (fake) {
    const upstream = yield* Upstream
    const more = yield* Deferred.make<void>()
    yield* fake.script(Fake.sse(Effect.sleep("50 millis"), "one", Deferred.await(more), "two"))
    const stream = yield* upstream.open(post(fake.url))
    yield* pull(stream)
    // Twice the idle timeout.
    yield* Effect.sleep("2 seconds")
    yield* Deferred.succeed(more, undefined)
    assert.deepStrictEqual(yield* drained(stream), { bytes: 3, failure: undefined })
  })

  const opened = Effect.fnUntraced(function* (fake: Fake.FakeUpstream) {
    const upstream = yield* Upstream
    const scope = yield* Scope.make()
    const stream = yield* upstream.open(post(fake.url)).pipe(Scope.extend(scope))
    yield* pull(stream)
    return { stream, close: Scope.close(scope, Exit.void), received: yield* fake.received }
  })

  check("a closed scope takes the socket with it", function* (fake) {
    yield* fake.script(Fake.sse("one", Effect.never))
    const { close, received } = yield* opened(fake)
    yield* close
    yield* received.closed
  })

  check("a finished stream leaves its connection to the next request", function* (fake) {
    const upstream = yield* Upstream
    const end = yield* Deferred.make<void>()
    yield* fake.script(Fake.sse("one", Deferred.await(end)), Fake.json(200, {}))
    const { close, received, stream } = yield* opened(fake)
    stream.finish()
    yield* close
    yield* Deferred.succeed(end, undefined)
    yield* Fake.settled
    yield* upstream.post(post(fake.url))
    assert.strictEqual((yield* fake.received).socket, received.socket)
  })

  check("a finished stream that goes on is cut all the same", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.sse("one", Effect.never))
    const stream = yield* upstream.open(post(fake.url))
    yield* pull(stream)
    stream.finish()
    const { closed } = yield* fake.received
    yield* closed
  })

  check("interruption before the head cancels the call", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.silent, Fake.silent)
    for (const asking of [Effect.asVoid(upstream.post(post(fake.url))), Effect.asVoid(upstream.open(post(fake.url)))]) {
      const fiber = yield* Effect.fork(asking)
      const { closed } = yield* fake.received
      yield* Fiber.interrupt(fiber)
      yield* closed
    }
  })
})

/** Pieces of one MiB, and the number consumed. */
const counted = (count: number) => {
  const seen = { taken: 0 }
  const body: ByteChunks = {
    length: count * MiB,
    *[Symbol.iterator]() {
      for (; seen.taken < count; seen.taken++) yield Buffer.alloc(MiB, "x")
    }
  }
  return { body, seen }
}

describe("a body in pieces", () => {
  check("comes whole, with its length, and the connection serves again", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.json(200, {}), Fake.json(200, {}))
    const picture = Buffer.alloc(5 * MiB + 1, createHash("sha256").update("seed").digest())
    const pieces = jsonChunks({ prompt: "é", image: new Base64Field(picture, "data:image/png;base64,") }, "mark")
    for (const _ of [1, 2]) {
      assert.strictEqual((yield* upstream.post({ ...post(fake.url), body: pieces })).status, 200)
      const { body, bytes, headers } = yield* fake.received
      assert.strictEqual(headers["content-length"], String(bytes.length))
      assert.strictEqual(headers["transfer-encoding"], undefined)
      const sent = { prompt: "é", image: `data:image/png;base64,${picture.toString("base64")}` }
      assert.isTrue(JSON.stringify(body) === JSON.stringify(sent))
    }
  })

  check("is made no faster than the host takes it, and no more once nobody waits", function* () {
    const upstream = yield* Upstream
    const closed = yield* Deferred.make<void>()
    let connection: Socket | undefined
    const port = yield* listen(
      (socket) => {
        connection = socket.on("close", () => Deferred.unsafeDone(closed, Effect.void))
      },
      { pauseOnConnect: true }
    )
    const { body, seen } = counted(512)
    const posting = yield* Effect.fork(upstream.post({ ...post(`http://127.0.0.1:${port}`), body }))
    yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => seen.taken > 0 })
    yield* Fiber.interrupt(posting)
    connection?.resume()
    yield* Deferred.await(closed)
    assert.isBelow(seen.taken, 512)
  })
})
