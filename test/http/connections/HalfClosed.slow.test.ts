import { Deferred, Effect, Struct } from "effect"
import { zero } from "../../../src/domain/Money.ts"
import { assertRefused, badRequest, chatPath, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { silent, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  chunk,
  completion,
  ending,
  gateway,
  Upstreams,
  usual,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"
import { answersIn, open } from "./RawSocket.ts"

const malformed = badRequest("The request is not valid HTTP.")
const told = "one two three"

const request = (secret: string, id: string, body: object, more = "") => {
  const json = JSON.stringify(body)
  const head = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\nx-request-id: ${id}\r\n${more}`
  return `${head}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`
}

/** An answer that comes once the gate is opened. */
const gated = (gate: Deferred.Deferred<void>) =>
  steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify({ ...completion(told), usage: usual }))

withLayer(gateway({ talk: {} }))("a client that shuts down its sending side", (it) => {
  it.scoped("is answered after any time", function* () {
    const { first } = yield* Upstreams
    const { secret, spent } = yield* Served.customer()
    const gate = yield* Deferred.make<void>()
    yield* first.script(gated(gate))
    const connection = yield* open
    yield* connection.write(request(secret, "half-json", talk("talk")))
    connection.socket.end()
    yield* Effect.sleep("700 millis")
    yield* Deferred.succeed(gate, undefined)
    const received = yield* connection.closed
    const [answer, ...more] = answersIn(received)
    assert.isTrue(received.startsWith("HTTP/1.1 200 OK\r\n"), received.slice(0, 100))
    assert.lengthOf(more, 0)
    assert.include(answer?.text, told)
    assert.deepInclude(yield* Served.logged("half-json"), { status: 200, code: null })
    assert.strictEqual(yield* spent, usualCharge)
  })

  it.scoped("is answered at once where the answer is ready", function* () {
    const { secret } = yield* Served.customer()
    for (const [target, status] of [
      ["/healthz", 200],
      ["/v1/models", 200],
      ["/v1/nowhere", 404]
    ] as const) {
      const connection = yield* open
      connection.socket.end(`GET ${target} HTTP/1.0\r\nx-api-key: ${secret}\r\n\r\n`)
      assert.isTrue((yield* connection.closed).startsWith(`HTTP/1.1 ${status} `))
    }
  })

  it.scoped("gets a whole stream, even one that begins late", function* () {
    const { first } = yield* Upstreams
    const { secret, spent } = yield* Served.customer()
    for (const isLate of [true, false]) {
      const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      yield* first.script(
        sse(
          Deferred.await(gates[0]),
          chunk({ content: "one " }),
          Deferred.await(gates[1]),
          chunk({ content: "two" }),
          ending
        )
      )
      const connection = yield* open
      yield* connection.write(request(secret, `half-stream-${isLate}`, { ...talk("talk"), stream: true }))
      if (isLate) connection.socket.end()
      yield* Effect.sleep("200 millis")
      yield* Deferred.succeed(gates[0], undefined)
      yield* soon(Effect.sync(() => assert.include(connection.received(), "one ")))
      if (!isLate) connection.socket.end()
      yield* Effect.sleep("500 millis")
      yield* Deferred.succeed(gates[1], undefined)
      const received = yield* connection.closed
      assert.isTrue(received.startsWith("HTTP/1.1 200 OK\r\n"), received.slice(0, 100))
      assert.match(received, /one .*two.*\[DONE\]/s)
      assert.deepInclude(yield* Served.logged(`half-stream-${isLate}`), { status: 200, code: null })
    }
    assert.isAbove(Number(yield* spent), 0)
  })

  it.scoped("and leaves later is noticed", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* Served.customer()
    const calls = first.calls.length
    yield* first.script(silent)
    const connection = yield* open
    yield* connection.write(request(secret, "half-left", { ...talk("talk"), stream: true }))
    connection.socket.end()
    yield* soon(Effect.sync(() => assert.lengthOf(first.calls, calls + 1)))
    yield* Effect.sync(() => connection.socket.destroy())
    yield* Effect.timeout(first.calls[calls]?.closed ?? Effect.never, "10 seconds")
    assert.deepInclude(yield* Served.logged("half-left"), { status: 499, code: "client_closed", charge: zero })
  })

  it.scoped("after requests sent ahead gets an answer to each", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* Served.customer()
    const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
    yield* first.script(gated(gates[0]))
    const connection = yield* open
    yield* connection.write(
      [
        request(secret, "ahead-1", talk("talk")),
        `GET /v1/models HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\nx-request-id: ahead-2\r\n\r\n`,
        `GET /healthz HTTP/1.1\r\nHost: x\r\nx-request-id: ahead-3\r\n\r\n`
      ].join("")
    )
    connection.socket.end()
    yield* Effect.sleep("300 millis")
    yield* Deferred.succeed(gates[0], undefined)
    const all = answersIn(yield* connection.closed)
    assert.deepStrictEqual(
      all.map(({ headers, status }) => [status, headers.get("x-request-id")]),
      [
        [200, "ahead-1"],
        [200, "ahead-2"],
        [200, "ahead-3"]
      ]
    )
  })
})

withLayer(gateway({ talk: {} }))("a malformed request sent ahead", (it) => {
  for (const [what, tail, isHalfClosed] of [
    ["garbage", "garbage\r\n\r\n", false],
    ["garbage that keeps coming", "garbage\r\n\r\n".repeat(1000), false],
    ["garbage before the end of all sending", "garbage\r\n\r\n", true],
    ["half a head before the end of all sending", "GET /v1/models HTTP/1.1\r\nHos", true]
  ] as const) {
    it.scoped(`leaves the answer before it complete and is refused after it: ${what}`, function* () {
      const { first } = yield* Upstreams
      const { secret } = yield* Served.customer()
      const gate = yield* Deferred.make<void>()
      yield* first.script(gated(gate))
      const connection = yield* open
      yield* connection.write(request(secret, `spoiled-${what.length}`, talk("talk")) + tail)
      if (isHalfClosed) connection.socket.end()
      yield* Effect.sleep("300 millis")
      assert.notInclude(connection.received(), "\r\n")
      if (!isHalfClosed) yield* connection.write("more garbage\r\n\r\n")
      yield* Deferred.succeed(gate, undefined)
      const [answer, refusal, ...more] = answersIn(yield* connection.closed)
      assert.strictEqual(answer?.status, 200)
      assert.include(answer?.text, told)
      assert.lengthOf(more, 0)
      if (refusal === undefined) return assert.fail("the malformed request was not refused")
      assertRefused(refusal, malformed)
      assert.deepInclude(yield* Served.logged(`spoiled-${what.length}`), { status: 200, code: null })
    })
  }

  it.scoped("leaves a stream before it complete", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* Served.customer()
    const gate = yield* Deferred.make<void>()
    yield* first.script(sse(chunk({ content: "one " }), Deferred.await(gate), chunk({ content: "two" }), ending))
    const connection = yield* open
    yield* connection.write(request(secret, "spoiled-stream", { ...talk("talk"), stream: true }))
    yield* soon(Effect.sync(() => assert.include(connection.received(), "one ")))
    yield* connection.write("garbage\r\n\r\n")
    yield* Effect.sleep("200 millis")
    yield* Deferred.succeed(gate, undefined)
    assert.match(yield* connection.closed, /one .*two.*\[DONE\].*HTTP\/1\.1 400 Bad Request\r\n/s)
  })

  it.scoped("whose body is malformed leaves the answer before it complete", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* Served.customer()
    const gate = yield* Deferred.make<void>()
    yield* first.script(gated(gate))
    const connection = yield* open
    const second = `POST ${chatPath} HTTP/1.1\r\nHost: x\r\nx-api-key: ${secret}\r\nTransfer-Encoding: chunked\r\n\r\n`
    yield* connection.write(`${request(secret, "spoiled-body", talk("talk"))}${second}5\r\nhello\r\nzz\r\n`)
    yield* Effect.sleep("300 millis")
    yield* Deferred.succeed(gate, undefined)
    const [answer, refusal] = answersIn(yield* connection.closed)
    assert.include(answer?.text, told)
    if (refusal === undefined) return assert.fail("the malformed request was not refused")
    assertRefused(refusal, malformed)
  })

  it.scoped("behind the last request of a connection is not answered", function* () {
    const { first } = yield* Upstreams
    const { secret } = yield* Served.customer()
    yield* first.script(answers())
    const connection = yield* open
    yield* connection.write(`${request(secret, "last", talk("talk"), "Connection: close\r\n")}garbage\r\n\r\n`)
    const all = answersIn(yield* connection.closed)
    assert.deepStrictEqual(all.map(Struct.get("status")), [200])
  })

  it.scoped("with a malformed body after its own answer is answered once", function* () {
    const connection = yield* open
    yield* connection.write("POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    assertRefused(yield* connection.answer(1), refusals.noEndpoint)
    yield* connection.write("zz\r\n")
    assert.lengthOf(answersIn(yield* connection.closed), 1)
  })
})
