import type { RequestListener } from "node:http"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { send } from "../../src/fetching/PinnedRequest.ts"
import { assert, describe, it } from "../harness/It.ts"
import { ask, below, endless, fetcherOver, make } from "./ForeignServer.ts"

const mebibyte = 1024 * 1024

const openFetcher = fetcherOver(["127.0.0.1"], { connectTimeoutSeconds: 1 })

describe("a good response", () => {
  const sizes = [0, 1, 65_536, mebibyte]
  it.scopedLive.each(sizes)("is read whole, up to the limit: %i bytes", function* (size) {
    const fetcher = yield* openFetcher
    const body = Buffer.alloc(size, "0123456789")
    const host = yield* make((request, response) => {
      if (request.url === "/announced") response.writeHead(200, { "content-length": size })
      response.end(body)
    })
    for (const path of ["/announced", "/chunked"]) {
      assert.isTrue(body.equals(yield* fetcher.bytes(ask(host.url + path))))
      const chunks = yield* Stream.runCollect(fetcher.stream(ask(host.url + path)))
      assert.isTrue(body.equals(Buffer.concat([...chunks])))
    }
    yield* host.left
  })

  it.scopedLive("is read only as far as its content-length", function* () {
    const fetcher = yield* openFetcher
    const { port } = yield* below((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst and more"))
    const outcome = yield* Effect.either(fetcher.bytes(ask(`http://127.0.0.1:${port}/`)))
    if (outcome._tag === "Right") assert.strictEqual(String(outcome.right), "first")
    else assert.strictEqual(outcome.left.reason, "network")
  })

  it.scopedLive("is paused at its host while it is not read", function* () {
    const fetcher = yield* openFetcher
    const total = 32 * mebibyte
    let written = 0
    const host = yield* make((_, response) => {
      const write = () => {
        while (written < total) {
          written += mebibyte
          if (!response.write(Buffer.alloc(mebibyte))) return
        }
        response.end()
      }
      response.on("drain", write)
      write()
    })
    const begun = yield* Deferred.make<void>()
    const goOn = yield* Deferred.make<void>()
    const reading = yield* fetcher.stream(ask(host.url, { limitBytes: total })).pipe(
      Stream.tap(() => Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(goOn))),
      Stream.runFold(0, (bytes, chunk) => bytes + chunk.length),
      Effect.fork
    )
    yield* Deferred.await(begun)
    yield* Effect.sleep("300 millis")
    assert.isBelow(written, total)
    yield* Deferred.succeed(goOn, undefined)
    assert.strictEqual(yield* Fiber.join(reading), total)
  })
})

describe("a body that breaks before it is read", () => {
  it.scopedLive("fails once it is read, and is no empty file", function* () {
    const host = yield* make((_, response) =>
      response.writeHead(200, { "content-length": 9 }).write("five!", () => response.destroy())
    )
    const rest = { post: undefined, addresses: undefined, ca: undefined, proxy: undefined, onConnect: () => undefined }
    const { body } = yield* send({ ...rest, headers: {}, url: new URL(host.url) })
    yield* host.left
    yield* Effect.sleep("50 millis")
    const failure = yield* Effect.flip(Stream.runDrain(body))
    assert.deepInclude(failure, { reason: "network", status: 200 })
  })
})

describe("an interrupted fetch", () => {
  const stages: ReadonlyArray<readonly [string, RequestListener]> = [
    ["before the head", () => undefined],
    ["before the body", (_, response) => response.flushHeaders()],
    ["in the body", (_, response) => endless(response, Buffer.alloc(1))]
  ]
  it.scopedLive.each(stages)("closes its connection at once: %s", function* ([, reply]) {
    const fetcher = yield* openFetcher
    const host = yield* make(reply)
    const limits = { limitBytes: 1e12, withinSeconds: 3_600 }
    for (const fetching of [
      fetcher.bytes(ask(host.url, limits)),
      Stream.runDrain(fetcher.stream(ask(host.url, limits)))
    ]) {
      const fiber = yield* Effect.fork(fetching)
      yield* host.called
      yield* Fiber.interrupt(fiber)
    }
    yield* host.left
  })

  it.scopedLive("ends while it connects, or waits for a name", function* () {
    const fetcher = yield* fetcherOver(["127.0.0.1"], { connectTimeoutSeconds: 3_600, names: () => Effect.never })
    const { gone, port } = yield* below(() => undefined)
    const secure = yield* Effect.fork(fetcher.bytes(ask(`https://127.0.0.1:${port}/`)))
    const named = yield* Effect.fork(fetcher.bytes(ask("http://slow.example/")))
    yield* Effect.sleep("100 millis")
    yield* Fiber.interruptAll([secure, named])
    yield* gone
  })

  it.scopedLive("closes its connection when its reader stops", function* () {
    const fetcher = yield* openFetcher
    const host = yield* make((_, response) => endless(response))
    const first = yield* Stream.runHead(fetcher.stream(ask(host.url, { limitBytes: 1e12 })))
    assert.strictEqual(first._tag, "Some")
    yield* host.left
  })
})
