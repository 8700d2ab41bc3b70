import { createServer, type Server } from "node:http"
import { Effect } from "effect"
import { allowHalfOpen } from "../../src/node/Outgoing.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"
import { openTo } from "../http/connections/RawSocket.ts"

/** What a client receives that shuts down its sending side before the response is ready. */
const receive = (prepare: (server: Server) => void) =>
  Effect.gen(function* () {
    const server = createServer((_, response) => setTimeout(() => response.end("late"), 50))
    prepare(server)
    const port = yield* listen(server)
    const { closed, socket } = yield* openTo(`http://127.0.0.1:${port}`)
    socket.end("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return yield* closed
  })

describe("a client that shuts down its sending side", () => {
  it.scopedLive("gets no response from Node itself", function* () {
    assert.strictEqual(yield* receive(() => {}), "")
  })

  it.scopedLive("gets its response from a server that allows it", function* () {
    assert.match(yield* receive(allowHalfOpen), /^HTTP\/1\.1 200 OK\r\n[^]*late/)
  })
})
