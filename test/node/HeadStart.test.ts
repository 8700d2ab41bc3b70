import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createServer as createTcpServer } from "node:net"
import { Deferred, Effect } from "effect"
import { makeHeadStart } from "../../src/node/Outgoing.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"
import { openTo } from "../http/connections/RawSocket.ts"

const head = Buffer.from("HTTP/1.1 ")

describe("a response whose head was begun early", () => {
  it.scopedLive.each([0, 1, 5, head.length, head.length + 2])(
    "arrives once and whole after %i bytes",
    function* (early) {
      const arrived = yield* Deferred.make<{ readonly request: IncomingMessage; readonly response: ServerResponse }>()
      const server = createServer((request, response) =>
        Deferred.unsafeDone(arrived, Effect.succeed({ request, response }))
      )
      const port = yield* listen(server)
      const { closed, received, write } = yield* openTo(`http://127.0.0.1:${port}`)
      yield* write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      const { request, response } = yield* Deferred.await(arrived)
      const sendNext = makeHeadStart(request.socket, head)
      for (let sent = 0; sent < early; sent++) sendNext()
      const begun = head.toString().slice(0, early)
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => received() === begun })
      response.write("first, ")
      response.end("second")
      const text = yield* closed
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*first, [^]*second/)
      assert.lengthOf(text.match(/HTTP\/1\.1/g) ?? [], 1)
    }
  )

  it.scopedLive("is needed, as Node tells a client that has gone from one that waits by writes alone", function* () {
    const watch = (leave: "end" | "destroy") =>
      Effect.gen(function* () {
        const events: Array<string> = []
        const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
          for (const name of ["end", "error", "close"]) socket.on(name, () => events.push(name))
          socket.resume()
        })
        const port = yield* listen(server)
        const { socket } = yield* openTo(`http://127.0.0.1:${port}`)
        socket[leave]()
        yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => events.length > 0 })
        yield* Effect.sleep("100 millis")
        return events
      })
    assert.deepStrictEqual(yield* watch("end"), ["end"])
    assert.deepStrictEqual(yield* watch("destroy"), ["end"])
  })
})
