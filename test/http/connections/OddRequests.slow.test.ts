import { SqlClient } from "@effect/sql"
import { Deferred, Effect } from "effect"
import { zero } from "../../../src/domain/Money.ts"
import { openAccount } from "../../harness/client/Account.ts"
import {
  assertRefused,
  badRequest,
  call,
  chatPath,
  ownId,
  type Refusal,
  refusals,
  soon,
  talk
} from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { steps } from "../../harness/upstream/FakeUpstream.ts"
import { answers, completion, gatewayProcess, streams, Upstreams, usual } from "../../harness/upstream/Upstreams.ts"
import { answersIn, ask, open } from "./RawSocket.ts"

const served = gatewayProcess({ talk: {} })

const malformed = badRequest("The request is not valid HTTP.")
const overflow = badRequest("The request headers are too large.")
const { missingKey, noEndpoint } = refusals

const get = (target: string, more = "") => `GET ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
const post = (more: string, body = "") => `POST ${chatPath} HTTP/1.1\r\nHost: x\r\n${more}\r\n${body}`

/** What no client library sends, each over a connection of its own. */
const oddities: ReadonlyArray<readonly [what: string, bytes: string | Uint8Array, refusal: Refusal]> = [
  ["garbage", "hello there\r\n\r\n", malformed],
  ["bytes", Uint8Array.from({ length: 64 }, (_, at) => (at * 37 + 128) % 256), malformed],
  ["a greeting of TLS", Buffer.from("16030100c8010000c40303", "hex"), malformed],
  ["the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", malformed],
  ["an unknown method", "BREW /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", malformed],
  ["an unknown version", "GET /v1/models HTTP/9.9\r\nHost: x\r\n\r\n", malformed],
  ["a header without a name", get("/v1/models", ": x\r\n"), malformed],
  ["a header with a space in its name", get("/v1/models", "x y: z\r\n"), malformed],
  ["a header with a control character", get("/v1/models", "x: \u0001\r\n"), malformed],
  ["an invalid length", post("Content-Length: ten\r\n"), malformed],
  ["two lengths", post("Content-Length: 1\r\nContent-Length: 2\r\n"), malformed],
  ["a length beside chunks", post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), malformed],
  ["headers of 40 KiB", get("/v1/models", `x: ${"x".repeat(40 * 1024)}\r\n`), overflow],
  ["a thousand headers", get("/v1/models", "x: 0123456789012345678901234567890123456789\r\n".repeat(1000)), overflow],
  ["a path of 40 KiB", get(`/v1/${"x".repeat(40 * 1024)}`), overflow],
  ["a path of 20 KiB", get(`/v1/${"x".repeat(20 * 1024)}`), noEndpoint],
  ["a query of 20 KiB", get(`/v1/models?${"x".repeat(20 * 1024)}`), missingKey],
  ["half an escape in the path", get("/v1/%"), noEndpoint],
  ["a wrong escape in the path", get("/v1/%zz/%c0%80"), noEndpoint],
  ["a broken escape in a known path", get("/v1/models%ff"), noEndpoint],
  ["a way up and out", get("/v1/../../etc/passwd"), noEndpoint],
  ["an escaped way up and out", get("/v1/%2e%2e%2f%2e%2e%2fetc/passwd"), noEndpoint],
  ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", noEndpoint],
  ["CONNECT", "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n", noEndpoint],
  ["a strange expectation", get("/v1/models", "Expect: tea\r\n"), missingKey],
  ["a strange expectation of an unknown path", get("/nowhere", "Expect: tea\r\n"), noEndpoint],
  ["an offered upgrade", get("/v1/models", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), missingKey],
  [
    "an offered upgrade of an unknown path",
    get("/nowhere", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
    noEndpoint
  ],
  ["no Host", "GET /v1/models HTTP/1.1\r\n\r\n", missingKey],
  ["HTTP/1.0", "GET /v1/models HTTP/1.0\r\n\r\n", missingKey],
  ["an absolute form", get("http://elsewhere.test/v1/models"), missingKey],
  ["an absolute form of an unknown path", get("http://elsewhere.test/nowhere"), noEndpoint],
  ["a client that announces a body and leaves", post("Content-Length: 10\r\n", "12345"), missingKey]
]

withLayer(served)("the gateway", (it) => {
  it.effect.each(oddities)("answers %s in the envelope", function* ([, bytes, refusal]) {
    assertRefused(yield* ask(bytes), refusal)
    assert.strictEqual((yield* call("/healthz")).status, 200)
  })

  it.effect("survives clients that reset the connection after a CONNECT", function* () {
    const reset = Effect.gen(function* () {
      const connection = yield* open
      yield* connection.write(`CONNECT example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n${"x".repeat(100_000)}`)
      yield* Effect.sleep("2 millis")
      connection.socket.resetAndDestroy()
    })
    yield* Effect.repeatN(Effect.scoped(reset), 30)
    yield* Effect.sleep("200 millis")
    assert.strictEqual((yield* call("/healthz")).status, 200)
  })

  it.scoped("does not answer a HEAD of an absolute form as a GET", function* () {
    const connection = yield* open
    yield* connection.write("HEAD http://elsewhere.test/v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert.match(yield* connection.closed, /^HTTP\/1\.1 404 /)
  })

  const request = (secret: string, more: string, body: string) =>
    post(`Authorization: Bearer ${secret}\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n`, body)

  const offers: ReadonlyArray<readonly [what: string, headers: string]> = [
    [
      "an upgrade to h2c",
      "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n"
    ],
    ["an upgrade to a websocket", "Connection: Upgrade\r\nUpgrade: websocket\r\n"],
    ["an expectation of 100-continue", "Expect: 100-continue\r\n"],
    ["a strange expectation", "Expect: tea\r\n"],
    ["no connection to keep", "Connection: close\r\n"]
  ]

  it.effect.each(offers)("answers a chat that offers %s", function* ([, more]) {
    const { secret } = yield* openAccount({})
    yield* (yield* Upstreams).first.script(answers())
    const answer = yield* ask(request(secret, more, JSON.stringify(talk("talk"))))
    assert.strictEqual(answer.status, 200, answer.text)
    assert.match(answer.headers.get("x-request-id") ?? "", ownId)
    assert.include(answer.text, "fine")
  })

  it.scoped("closes the connection after a stream whose client keeps none", function* () {
    const { secret } = yield* openAccount({})
    yield* (yield* Upstreams).first.script(streams("fine"))
    const connection = yield* open
    yield* connection.write(request(secret, "Connection: close\r\n", JSON.stringify({ ...talk("talk"), stream: true })))
    const received = yield* connection.closed
    assert.match(received, /\r\nconnection: close\r\n/i)
    assert.match(received, /fine.*\[DONE\]\n\n\r\n0\r\n\r\n$/s)
  })

  it.scoped("answers requests sent ahead in their order, with garbage as the last", function* () {
    const { secret } = yield* openAccount({})
    yield* (yield* Upstreams).first.script(answers())
    const connection = yield* open
    yield* connection.write(
      [
        get("/v1/models", `x-api-key: ${secret}\r\nx-request-id: one\r\n`),
        request(secret, "x-request-id: two\r\n", JSON.stringify(talk("talk"))),
        get("/v1/nowhere", "x-request-id: three\r\n"),
        request(secret, "x-request-id: four\r\n", "{")
      ].join("")
    )
    yield* connection.answer(4)
    assert.deepStrictEqual(
      answersIn(connection.received()).map(({ headers, status }) => [status, headers.get("x-request-id")]),
      [
        [200, "one"],
        [200, "two"],
        [404, "three"],
        [400, "four"]
      ]
    )
    yield* connection.write("garbage\r\n\r\n")
    const last = yield* connection.answer(5)
    assertRefused(last, malformed)
    assert.isTrue((yield* connection.closed).endsWith(last.text))
  })

  const gated = (gate: Deferred.Deferred<void>) =>
    steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify({ ...completion("first"), usage: usual }))

  it.scoped("begins a request sent ahead once those before it are answered", function* () {
    const { secret } = yield* openAccount({})
    const { first } = yield* Upstreams
    const gate = yield* Deferred.make<void>()
    yield* first.script(gated(gate), answers(), answers())
    const before = first.calls.length
    const chat = request(secret, "", JSON.stringify(talk("talk")))
    const connection = yield* open
    yield* connection.write(chat.repeat(2))
    yield* soon(Effect.sync(() => assert.lengthOf(first.calls, before + 1)))
    assert.strictEqual((yield* ask(chat)).status, 200)
    assert.lengthOf(first.calls, before + 2)
    yield* Deferred.succeed(gate, undefined)
    const second = yield* connection.answer(2)
    assert.deepStrictEqual(
      answersIn(connection.received()).map(({ status }) => status),
      [200, 200]
    )
    assert.notInclude(second.text, "first")
    assert.lengthOf(first.calls, before + 3)
  })

  it.scoped("never begins a request whose client leaves before its turn", function* () {
    const customer = yield* Served.customer()
    const { first } = yield* Upstreams
    const gate = yield* Deferred.make<void>()
    yield* first.script(gated(gate), answers())
    const before = first.calls.length
    const chat = (id: string) => request(customer.secret, `x-request-id: ${id}\r\n`, JSON.stringify(talk("talk")))
    const connection = yield* open
    yield* connection.write(chat("turn-one") + chat("turn-two"))
    yield* soon(Effect.sync(() => assert.lengthOf(first.calls, before + 1)))
    connection.socket.resetAndDestroy()
    // The gateway has noticed by its answer.
    yield* call("/healthz")
    yield* Deferred.succeed(gate, undefined)
    yield* Served.logged("turn-one")
    assert.strictEqual((yield* ask(chat("turn-three"))).status, 200)
    assert.lengthOf(first.calls, before + 2)
  })

  it.scoped("answers 100 requests sent ahead and closes the connection at more", function* () {
    const health = get("/healthz")
    const [some, many] = [yield* open, yield* open]
    yield* some.write(health.repeat(101))
    assert.strictEqual((yield* some.answer(101)).status, 200)
    yield* many.write(health.repeat(500))
    yield* many.closed
    assert.strictEqual((yield* call("/healthz")).status, 200)
  })

  it.scoped("logs a client that leaves in the middle of its request", function* () {
    const sql = yield* SqlClient.SqlClient
    const { spent, ...customer } = yield* Served.customer()
    const half = (id: string) =>
      post(`x-api-key: ${customer.secret}\r\nx-request-id: ${id}\r\nContent-Length: 500\r\n`, '{"model":')
    const departures = [
      ["cut-off", "destroy"],
      ["half-closed", "end"]
    ] as const
    for (const [turn, [id, leave]] of departures.entries()) {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const connection = yield* open
          yield* connection.write(half(id))
          // Whoever leaves before it is known who they are leaves no row.
          const used = sql`SELECT 1 FROM rate_windows WHERE key_id = ${customer.key} AND used = ${turn + 1}`
          yield* soon(Effect.map(used, (rows) => assert.lengthOf(rows, 1)))
          yield* Effect.sync(() => (leave === "end" ? connection.socket.end() : connection.socket.destroy()))
          if (leave === "end") yield* connection.closed
        })
      )
      assert.deepInclude(yield* Served.logged(id), { status: 499, code: "client_closed", model: null, charge: zero })
    }
    for (const start of ["", "G", "GET /v1/mod", get("/v1/models").slice(0, -2)]) {
      const connection = yield* open
      yield* connection.write(start)
      yield* Effect.sync(() => connection.socket.destroy())
    }
    assert.strictEqual(yield* spent, 0n)
    assert.strictEqual((yield* call("/healthz")).status, 200)
  })

  it.effect("refuses a body with malformed chunks in the envelope", function* () {
    const { secret } = yield* openAccount({})
    const answer = yield* ask(post(`x-api-key: ${secret}\r\nTransfer-Encoding: chunked\r\n`, "5\r\nhello\r\nzz\r\n"))
    assertRefused(answer, malformed)
  })

  it.effect("survives all of these without an unexpected failure in its log", function* () {
    const { process, stderr } = yield* Served.ServedProcess
    assert.isNull(process.exitCode)
    assert.notMatch(stderr(), /unexpected|uncaught|unhandled/i)
  })
})
