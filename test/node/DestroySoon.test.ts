import { createServer, type IncomingMessage } from "node:http"
import { connect } from "node:net"
import { Effect } from "effect"
import { replaceDestroySoon } from "../../src/node/Outgoing.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"

const body = Buffer.alloc(32 * 1024 * 1024, "x")

/** What a client receives whose body is refused at once, and whether its connection was reset. */
const send = (prepare: (request: IncomingMessage) => void) =>
  Effect.gen(function* () {
    const server = createServer((request, response) => {
      prepare(request)
      response.writeHead(413, { connection: "close" }).end("too large")
    })
    const port = yield* listen(server)
    return yield* Effect.async<{ readonly received: string; readonly isReset: boolean }>((resume) => {
      let received = ""
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
      socket.setEncoding("latin1").on("data", (text: string) => (received += text))
      socket.on("error", () => {})
      socket.on("close", (isReset) => resume(Effect.succeed({ received, isReset })))
      socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`)
      socket.end(body)
    })
  })

describe("a connection whose last response comes before the end of the request", () => {
  it.scopedLive("is reset by Node itself", function* () {
    assert.isTrue((yield* send(() => {})).isReset)
  })

  it.scopedLive("is closed as it is told", function* () {
    const { isReset, received } = yield* send((request) =>
      replaceDestroySoon(request.socket, (destroySoon) => request.resume().once("end", destroySoon))
    )
    assert.isFalse(isReset)
    assert.match(received, /^HTTP\/1\.1 413 [^]*too large/)
  })
})
