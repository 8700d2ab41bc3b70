import { createHash } from "node:crypto"
import { createServer, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Upstream, type UpstreamRequest } from "../../../src/providers/client/Upstream.ts"
import { Encoded, jsonPieces, type Pieces } from "../../../src/services/runtime/Pieces.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

const layer = Upstream.layer({ connectTimeoutSeconds: 1, idleTimeoutSeconds: 1 })
const MiB = 1024 * 1024

const post = (baseUrl: string, body: Pieces): UpstreamRequest => ({
  account: { name: "fake", adapter: "openai-images", baseUrl, credential: undefined, headers: {} },
  path: "/edits",
  authorization: () => ({}),
  body
})

/** Pieces of a MiB each, and how many were taken. */
const counted = (count: number) => {
  const seen = { taken: 0 }
  const body: Pieces = {
    length: count * MiB,
    *[Symbol.iterator]() {
      for (; seen.taken < count; seen.taken++) yield Buffer.alloc(MiB, "x")
    }
  }
  return { body, seen }
}

/** A server that reads nothing of its only connection until it is told to, and the end of that connection. */
const deaf = Effect.gen(function* () {
  const listening = yield* Deferred.make<number>()
  const closed = yield* Deferred.make<void>()
  let connection: Socket | undefined
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const server = createServer({ pauseOnConnect: true }, (socket) => {
        connection = socket
        socket.on("error", () => undefined).on("close", () => Deferred.unsafeDone(closed, Effect.void))
      })
      return server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        if (address !== null && typeof address !== "string")
          Deferred.unsafeDone(listening, Effect.succeed(address.port))
      })
    }),
    (server) => Effect.sync(() => server.close())
  )
  const url = `http://127.0.0.1:${yield* Deferred.await(listening)}`
  const listen = Effect.sync(() => connection?.resume())
  return { closed: Deferred.await(closed), listen, url }
})

describe("a body in pieces", () => {
  it.scopedLive("comes whole, with its length, and the connection serves again", () =>
    Effect.gen(function* () {
      const fake = yield* Fake.make
      const upstream = yield* Upstream
      yield* fake.script(Fake.json(200, {}), Fake.json(200, {}))
      const picture = Buffer.alloc(5 * MiB + 1, createHash("sha256").update("seed").digest())
      const pieces = jsonPieces({ prompt: "é", image: new Encoded(picture, "data:image/png;base64,") }, "mark")
      for (const _ of [1, 2]) {
        assert.strictEqual((yield* upstream.post(post(fake.url, pieces))).status, 200)
        const { body, bytes, headers } = yield* fake.received
        assert.strictEqual(headers["content-length"], String(bytes.length))
        assert.strictEqual(headers["transfer-encoding"], undefined)
        const sent = { prompt: "é", image: `data:image/png;base64,${picture.toString("base64")}` }
        assert.isTrue(JSON.stringify(body) === JSON.stringify(sent))
      }
    }).pipe(Effect.provide(layer))
  )

  it.scopedLive("is made no faster than the host takes it, and no more once nobody waits", () =>
    Effect.gen(function* () {
      const { closed, listen, url } = yield* deaf
      const upstream = yield* Upstream
      const { body, seen } = counted(512)
      const posting = yield* Effect.fork(upstream.post(post(url, body)))
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => seen.taken > 0 })
      yield* Fiber.interrupt(posting)
      yield* listen
      yield* closed
      assert.isBelow(seen.taken, 512)
    }).pipe(Effect.provide(layer))
  )
})
