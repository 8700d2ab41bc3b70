import { createServer, type Server, type Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Option, Redacted, Scope } from "effect"
import type { ProviderAccount } from "../../../src/domain/Model.ts"
import {
  loggable,
  Upstream,
  type UpstreamRequest,
  type UpstreamStream
} from "../../../src/providers/client/Upstream.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

const secret = "sk-upstream-secret"
const account = (baseUrl: string, headers: Readonly<Record<string, string>> = {}): ProviderAccount => {
  return { name: "fake", adapter: "openai-chat", baseUrl, credential: Redacted.make(secret), headers }
}
const post = (baseUrl: string, headers?: Readonly<Record<string, string>>): UpstreamRequest => ({
  account: account(baseUrl, headers),
  path: "/echo?q=1",
  authorization: (key) => ({ authorization: `Bearer ${key}` }),
  headers: { "x-adapter": "yes" },
  body: '{"n":1}'
})

const layer = Upstream.layer({ connectTimeoutSeconds: 1, idleTimeoutSeconds: 1 })

const check = <A, E>(name: string, body: (fake: Fake.FakeUpstream) => Effect.Effect<A, E, Upstream | Scope.Scope>) =>
  it.scopedLive(name, () => Effect.flatMap(Fake.make, body).pipe(Effect.provide(layer)))

/** What has come, or how it ended. */
const pull = (stream: UpstreamStream) =>
  Effect.async<ReadonlyArray<Uint8Array>, Option.Option<ProviderFailure>>((resume) => {
    const callOff = stream.next((taken) =>
      resume(taken._tag === "Over" ? Effect.fail(taken.outcome) : Effect.succeed(taken.chunks))
    )
    return Effect.sync(callOff)
  })

/** Reads to the end: how many bytes came, and how it ended. */
const drained = (stream: UpstreamStream) => {
  let bytes = 0
  const reading = Effect.forever(
    Effect.map(pull(stream), (chunks) => {
      for (const chunk of chunks) bytes += chunk.length
    })
  )
  return Effect.map(Effect.flip(reading), (end) => ({ bytes, failure: Option.getOrUndefined(end) }))
}

/** The port of a server that speaks below HTTP. */
const listener = (talk: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.async<Server>((resume) => {
      const server = createServer((socket) => {
        socket.on("error", () => undefined)
        talk(socket)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(
    Effect.map((server) => {
      const address = server.address()
      return address === null || typeof address === "string" ? 0 : address.port
    })
  )

describe("Upstream", () => {
  check("posts JSON with the account's headers and credential, and gives back whatever came", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* fake.script(Fake.json(418, { ok: "é" }, { "x-said": "this" }))
      const answer = yield* upstream.post(post(`${fake.url}/v1`, { "X-Org": "acme", "X-Adapter": "operator" }))
      assert.deepStrictEqual([answer.status, answer.body, answer.headers["x-said"]], [418, '{"ok":"é"}', "this"])
      const { body, headers, method, path } = yield* fake.received
      assert.deepStrictEqual([method, path, body], ["POST", "/v1/echo?q=1", { n: 1 }])
      const { authorization, "content-type": type, "x-adapter": adapter, "x-org": org } = headers
      assert.deepStrictEqual(
        [authorization, type, adapter, org],
        [`Bearer ${secret}`, "application/json", "operator", "acme"]
      )
    })
  )

  check("gets, posts and puts, with and without a body, of text or of bytes", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const to = { account: account(fake.url), path: "/status?logs=1", authorization: () => ({}) }
      const bytes = Uint8Array.from([0, 255, 13, 10])
      for (const [request, method, type, length, body] of [
        [{ ...to, method: "GET" as const }, "GET", undefined, undefined, ""],
        [{ ...to, method: "PUT" as const }, "PUT", undefined, "0", ""],
        [to, "POST", undefined, "0", ""],
        [{ ...to, method: "PUT" as const, body: "é" }, "PUT", "application/json", "2", "c3a9"],
        [{ ...to, body: bytes, contentType: "image/png" }, "POST", "image/png", "4", "00ff0d0a"]
      ] as const) {
        yield* fake.script(Fake.text(200, "text/plain", "whole"), Fake.steps({}, "flow", "ing"))
        assert.strictEqual((yield* upstream.post(request)).body, "whole")
        const { bytes: streamed } = yield* drained(yield* upstream.open(request))
        assert.strictEqual(streamed, "flowing".length)
        for (const received of [yield* fake.received, yield* fake.received]) {
          const { "content-length": size, "content-type": sent } = received.headers
          assert.deepStrictEqual(
            [received.method, received.path, sent, size, received.bytes.toString("hex")],
            [method, "/status?logs=1", type, length, body]
          )
        }
      }
    })
  )

  check("follows no redirect, so that the credential stays with the route's own origin", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const elsewhere = yield* Fake.make
      yield* fake.script(Fake.text(307, "text/plain", "", { location: `${elsewhere.url}/echo` }))
      const answer = yield* upstream.post(post(fake.url))
      assert.strictEqual(answer.status, 307)
      const reached = yield* elsewhere.received.pipe(Effect.timeoutOption("100 millis"))
      assert.isTrue(Option.isNone(reached))
    })
  )

  check("takes up to 64 MiB of an answer, and lets go of the connection past that", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const mebibyte = Buffer.alloc(1024 * 1024, "x")
      const answering = (mebibytes: number) =>
        Fake.steps({ type: "text/plain" }, ...Array.from({ length: mebibytes }, () => mebibyte))
      yield* fake.script(answering(64), answering(65))
      const whole = yield* upstream.post(post(fake.url))
      assert.strictEqual(whole.body.length, 64 * 1024 * 1024)
      const failure = yield* Effect.flip(upstream.post(post(fake.url)))
      assert.deepStrictEqual([failure.class, failure.status], ["retry", 200])
      yield* fake.received
      const { closed } = yield* fake.received
      yield* closed
    })
  )

  const nobody = "http://127.0.0.1:1"
  for (const [name, baseUrl] of [
    ["a port nobody listens on", nobody],
    ["a name that does not exist", "http://gateway.invalid"],
    ["an address that is none", "not an address"],
    ["a port that is none", "http://127.0.0.1:99999"]
  ] as const) {
    check(`${name} is a network failure, in one piece and as a stream`, () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        const whole = yield* Effect.flip(upstream.post(post(baseUrl)))
        const streamed = yield* Effect.flip(upstream.open(post(baseUrl)))
        for (const failure of [whole, streamed]) {
          assert.deepStrictEqual([failure.class, failure.status, failure.unsent], ["network", undefined, true])
          assert.notStrictEqual(failure.detail, "")
        }
      })
    )
  }

  check("a host that speaks no TLS, one that speaks no HTTP, one that hangs up", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const other = yield* listener((socket) => socket.end("220 smtp ready\r\n"))
      yield* fake.script((response) => void response.socket?.destroy())
      for (const [url, unsent] of [
        [fake.url.replace("http:", "https:"), true],
        [`http://127.0.0.1:${other}`, false],
        [fake.url, false]
      ] as const) {
        const failure = yield* Effect.flip(upstream.post(post(url)))
        assert.deepStrictEqual([failure.class, failure.status, failure.unsent], ["network", undefined, unsent], url)
      }
    })
  )

  check("a connection that does not come about ends with the connect timeout", () =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const mute = yield* listener(() => undefined)
      const failure = yield* Effect.flip(upstream.post(post(`https://127.0.0.1:${mute}`)))
      assert.deepStrictEqual([failure.class, failure.unsent], ["timeout", true])
      assert.include(failure.detail, "UND_ERR_CONNECT_TIMEOUT")
    })
  )

  check("a request that a kept connection took, and dropped, may have arrived", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* fake.script(Fake.json(200, {}), (response) => void response.socket?.destroy())
      yield* upstream.post(post(fake.url))
      yield* Fake.settled
      const failure = yield* Effect.flip(upstream.post(post(fake.url)))
      assert.deepStrictEqual([failure.class, failure.status, failure.unsent], ["network", undefined, false])
      const [first, second] = yield* Effect.all([fake.received, fake.received])
      assert.strictEqual(second.socket, first.socket)
    })
  )

  check("the next request survives a connection that the host closed in between", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const sockets = new Set<number>()
      for (let round = 0; round < 10; round++) {
        yield* fake.script(Fake.json(200, {}), Fake.json(200, {}))
        yield* upstream.post(post(fake.url))
        const first = yield* fake.received
        yield* Fake.settled
        yield* fake.closeIdle
        yield* Fake.settled
        assert.strictEqual((yield* upstream.post(post(fake.url))).status, 200)
        const second = yield* fake.received
        assert.notStrictEqual(second.socket, first.socket)
        sockets.add(second.socket)
      }
      assert.strictEqual(sockets.size, 10)
    })
  )

  check("a stream's head comes before its body, its bytes as they come", (fake) =>
    Effect.gen(function* () {
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
  )

  check("a stream cut in the middle gives what came, then a network failure", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* fake.script(Fake.sse("half of it", Fake.cut))
      const { bytes, failure } = yield* drained(yield* upstream.open(post(fake.url)))
      assert.deepStrictEqual([bytes, failure?.class, failure?.status, failure?.unsent], [10, "network", 200, false])
    })
  )

  check("silence inside a stream is a timeout, but a comment now and then is no silence", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const comments = Array.from({ length: 12 }, () => [Effect.sleep("250 millis"), ": still here\n"]).flat()
      yield* fake.script(Fake.sse(...comments), Fake.sse("one", Effect.never))
      const [talking, silent] = yield* Effect.all([upstream.open(post(fake.url)), upstream.open(post(fake.url))])
      const [alive, dead] = yield* Effect.all([drained(talking), drained(silent)], { concurrency: 2 })
      assert.deepStrictEqual(alive, { bytes: 12 * 13, failure: undefined })
      assert.deepStrictEqual([dead.bytes, dead.failure?.class, dead.failure?.status], [3, "timeout", 200])
    })
  )

  check("a reader that does not read holds up the host, and is no silence of the host's", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const total = 128 * 1024 * 1024
      const piece = Buffer.alloc(64 * 1024, "x")
      let written = 0
      yield* fake.script(async (response) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        while (written < total) {
          written += piece.length
          if (!response.write(piece)) await new Promise((resume) => response.once("drain", resume))
        }
        response.end()
      })
      const stream = yield* upstream.open(post(fake.url))
      yield* pull(stream)
      // Still for two seconds: twice the idle timeout, and long after everything would have been through.
      for (let still = 0, seen = -1; still < 20; still = seen === written ? still + 1 : 0) {
        seen = written
        yield* Effect.sleep("100 millis")
      }
      assert.isBelow(written, total / 2)
      const { failure } = yield* drained(stream)
      assert.isUndefined(failure)
      assert.strictEqual(written, total)
    })
  )

  const opened = (fake: Fake.FakeUpstream) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      const scope = yield* Scope.make()
      const stream = yield* upstream.open(post(fake.url)).pipe(Scope.extend(scope))
      yield* pull(stream)
      return { stream, close: Scope.close(scope, Exit.void), received: yield* fake.received }
    })

  check("a closed scope takes the socket with it", (fake) =>
    Effect.gen(function* () {
      yield* fake.script(Fake.sse("one", Effect.never))
      const { close, received } = yield* opened(fake)
      yield* close
      yield* received.closed
    })
  )

  check("a finished stream leaves its connection to the next request", (fake) =>
    Effect.gen(function* () {
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
  )

  check("a finished stream that goes on is cut all the same", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* fake.script(Fake.sse("one", Effect.never))
      const stream = yield* upstream.open(post(fake.url))
      yield* pull(stream)
      stream.finish()
      const { closed } = yield* fake.received
      yield* closed
    })
  )

  check("interruption before the head cancels the call", (fake) =>
    Effect.gen(function* () {
      const upstream = yield* Upstream
      yield* fake.script(Fake.silent, Fake.silent)
      for (const asking of [
        Effect.asVoid(upstream.post(post(fake.url))),
        Effect.asVoid(upstream.open(post(fake.url)))
      ]) {
        const fiber = yield* Effect.fork(asking)
        const { closed } = yield* fake.received
        yield* Fiber.interrupt(fiber)
        yield* closed
      }
    })
  )

  it("keeps the credential out of what is logged", () => {
    const text = `tried\nwith  ${secret} and again ${secret}`
    assert.strictEqual(loggable(account(nobody), text), "tried with [credential] and again [credential]")
  })
})
