import { Effect } from "effect"
import { assertRefused, chatPath, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gatewayProcess } from "../../harness/upstream/Upstreams.ts"
import { open, type RawConnection } from "./RawSocket.ts"

const mib = 1024 * 1024
const chunk = Buffer.alloc(mib, "x")

const head = (framing: string) => `POST ${chatPath} HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n`
const chunked = "Transfer-Encoding: chunked"
const announcing = (bytes: number) => `Content-Length: ${bytes}`

/** Sends up to so many MiB, as fast as they are read; how many were sent when the connection ended. */
const pour = (
  { socket }: RawConnection,
  mebibytes: number,
  framed: (bytes: Buffer) => ReadonlyArray<string | Buffer>
) =>
  Effect.async<number>((resume) => {
    let sent = 0
    const done = () => {
      socket.off("close", done).off("drain", send)
      resume(Effect.succeed(sent))
    }
    const send = () => {
      if (socket.closed || sent === mebibytes) return done()
      sent += 1
      let isTaken = true
      for (const piece of framed(chunk)) isTaken = socket.write(piece)
      if (isTaken) setImmediate(send)
      else socket.once("drain", send)
    }
    socket.once("close", done)
    send()
  })

withLayer(gatewayProcess({ talk: {} }))("a body that was refused early", (it) => {
  it.scoped.each([
    ["announced", announcing(4096 * mib), (bytes: Buffer) => [bytes]],
    ["chunked", chunked, (bytes: Buffer) => [`${bytes.length.toString(16)}\r\n`, bytes, "\r\n"]]
  ] as const)("closes its connection after a limited amount: %s", function* ([, framing, framed]) {
    const connection = yield* open
    yield* connection.write(head(framing))
    const answer = yield* connection.answer(1)
    assertRefused(answer, refusals.missingKey)
    assert.notStrictEqual(answer.headers.get("connection"), "close")
    const sent = yield* pour(connection, 4096, framed)
    assert.isAtLeast(sent, 64)
    assert.isBelow(sent, 2048)
    yield* connection.closed
  })

  it.scoped("closes its connection after a limited time", function* () {
    const connection = yield* open
    yield* connection.write(head(announcing(mib)))
    assertRefused(yield* connection.answer(1), refusals.missingKey)
    const refusedAt = performance.now()
    yield* connection.closed
    assert.isAbove(performance.now() - refusedAt, 4000)
  })

  it.scoped("leaves its connection to the next request where it comes in time", function* () {
    const connection = yield* open
    for (let nth = 1; nth <= 12; nth++) {
      yield* connection.write(head(announcing(2 * mib)))
      assertRefused(yield* connection.answer(nth), refusals.missingKey)
      yield* pour(connection, 2, (bytes) => [bytes])
    }
    yield* Effect.sleep("6 seconds")
    yield* connection.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert.strictEqual((yield* connection.answer(13)).status, 200)
    const { stderr } = yield* Served.ServedProcess
    assert.notMatch(stderr(), /warning/i)
  })
})
