import { Effect, Option } from "effect"
import { toLoggable, Upstream } from "../../../src/providers/client/Upstream.ts"
import { type CurrentAttempt, mayDependOnRequest, ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { account, check, drained, listen, post, secret } from "./Upstreams.ts"

describe("Upstream", () => {
  check("posts JSON with the account's headers and credential, and gives back whatever came", function* (fake) {
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

  check("gets, posts and puts, with and without a body, of text or of bytes", function* (fake) {
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

  check("follows no redirect, so that the credential stays with the route's own origin", function* (fake) {
    const upstream = yield* Upstream
    const elsewhere = yield* Fake.make
    yield* fake.script(Fake.text(307, "text/plain", "", { location: `${elsewhere.url}/echo` }))
    const answer = yield* upstream.post(post(fake.url))
    assert.strictEqual(answer.status, 307)
    const reached = yield* elsewhere.received.pipe(Effect.timeoutOption("100 millis"))
    assert.isTrue(Option.isNone(reached))
  })

  check("takes up to 64 MiB of an answer, and lets go of the connection past that", function* (fake) {
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

  check("an attempt that is aborted ends its call, and whatever it asks afterwards", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.silent, Fake.silent)
    const failure = new ProviderFailure({ class: "timeout", status: undefined, detail: "late" })
    const attempt: CurrentAttempt = {
      span: undefined,
      providerRequestId: undefined,
      abortedBy: undefined,
      endCall: undefined
    }
    const call = Effect.flip(upstream.post(post(fake.url), attempt))
    const calling = yield* Effect.fork(call)
    const { closed } = yield* fake.received
    attempt.abortedBy = failure
    attempt.endCall?.(failure)
    assert.strictEqual(yield* calling, failure)
    yield* closed
    assert.strictEqual(yield* call, failure)
  })

  const nobody = "http://127.0.0.1:1"
  for (const [name, baseUrl] of [
    ["a port nobody listens on", nobody],
    ["a name that does not exist", "http://gateway.invalid"],
    ["an address that is none", "not an address"],
    ["a port that is none", "http://127.0.0.1:99999"]
  ] as const) {
    check(`${name} is a network failure, in one piece and as a stream`, function* () {
      const upstream = yield* Upstream
      const whole = yield* Effect.flip(upstream.post(post(baseUrl)))
      const streamed = yield* Effect.flip(upstream.open(post(baseUrl)))
      for (const failure of [whole, streamed]) {
        assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["network", undefined, true])
        assert.notStrictEqual(failure.detail, "")
      }
    })
  }

  check("a host that speaks no TLS, one that speaks no HTTP, one that hangs up", function* (fake) {
    const upstream = yield* Upstream
    const other = yield* listen((socket) => socket.end("220 smtp ready\r\n"))
    yield* fake.script((response) => void response.socket?.destroy())
    for (const [url, unsent] of [
      [fake.url.replace("http:", "https:"), true],
      [`http://127.0.0.1:${other}`, false],
      [fake.url, false]
    ] as const) {
      const failure = yield* Effect.flip(upstream.post(post(url)))
      assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["network", undefined, unsent], url)
    }
  })

  const notHttp = [
    "220 smtp ready\r\n",
    "HTTP/1.1 abc\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
    `HTTP/1.1 200 OK\r\nx: ${"a".repeat(40_000)}\r\n\r\n`
  ]
  for (const said of notHttp) {
    check(`may be the request's fault where the host answers ${JSON.stringify(said.slice(0, 60))}`, function* () {
      const upstream = yield* Upstream
      const port = yield* listen((socket) => void socket.once("data", () => socket.end(said)))
      const request = post(`http://127.0.0.1:${port}`)
      for (const asking of [Effect.asVoid(upstream.post(request)), Effect.asVoid(upstream.open(request))]) {
        const failure = yield* Effect.flip(Effect.scoped(asking))
        assert.deepStrictEqual([failure.class, mayDependOnRequest(failure)], ["network", true])
      }
    })
  }

  check("may be the request's fault where the host hangs up on a large body, but not on a small one", function* () {
    const upstream = yield* Upstream
    const port = yield* listen((socket) => void socket.once("data", () => socket.resetAndDestroy()))
    const large = "x".repeat(100_000)
    for (const [url, body, isOfRequest] of [
      [`http://127.0.0.1:${port}`, "{}", false],
      [`http://127.0.0.1:${port}`, large, true],
      [nobody, large, false]
    ] as const) {
      const failure = yield* Effect.flip(upstream.post({ ...post(url), body }))
      assert.deepStrictEqual([failure.class, mayDependOnRequest(failure)], ["network", isOfRequest])
    }
  })

  check("a host that hints before it answers, or hangs up", function* () {
    const upstream = yield* Upstream
    const hint = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    const answering = yield* listen((socket) => {
      socket.write(hint)
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    })
    const { body, status } = yield* upstream.post(post(`http://127.0.0.1:${answering}`))
    assert.deepStrictEqual([status, body], [200, "ok"])
    const leaving = yield* listen((socket) => void socket.write(hint, () => setImmediate(() => socket.destroy())))
    const failure = yield* Effect.flip(upstream.post(post(`http://127.0.0.1:${leaving}`)))
    assert.deepStrictEqual([failure.class, failure.status], ["network", undefined])
  })

  check("a connection that does not come about ends with the connect timeout", function* () {
    const upstream = yield* Upstream
    const mute = yield* listen(() => undefined)
    const failure = yield* Effect.flip(upstream.post(post(`https://127.0.0.1:${mute}`)))
    assert.deepStrictEqual([failure.class, failure.isUnsent], ["timeout", true])
    assert.include(failure.detail, "UND_ERR_CONNECT_TIMEOUT")
  })

  check("a request that a kept connection took, and dropped, may have arrived", function* (fake) {
    const upstream = yield* Upstream
    yield* fake.script(Fake.json(200, {}), (response) => void response.socket?.destroy())
    yield* upstream.post(post(fake.url))
    yield* Fake.settled
    const failure = yield* Effect.flip(upstream.post(post(fake.url)))
    assert.deepStrictEqual([failure.class, failure.status, failure.isUnsent], ["network", undefined, false])
    const [first, second] = yield* Effect.all([fake.received, fake.received])
    assert.strictEqual(second.socket, first.socket)
  })

  check("the next request survives a connection that the host closed in between", function* (fake) {
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

  it("keeps the credential out of what is logged", () => {
    const text = `tried\nwith  ${secret} and again ${secret}`
    assert.strictEqual(toLoggable(account(nobody), text), "tried with [credential] and again [credential]")
  })
})
