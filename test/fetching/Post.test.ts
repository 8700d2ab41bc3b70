import type { RequestListener } from "node:http"
import { Effect } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import { below, endless, fetcherOver, make, sockets } from "./ForeignServer.ts"

const request = (url: string, withinSeconds = 20) => ({ url, headers: { "x-own": "1" }, body: "{}", withinSeconds })

describe("a POST to a customer's URL", () => {
  const replies: ReadonlyArray<readonly [what: string, status: number, RequestListener]> = [
    ["a status", 204, (_, response) => response.writeHead(204).end()],
    ["an error", 500, (_, response) => response.writeHead(500).end("<html>")],
    ["a body without end", 200, (_, response) => endless(response)],
    ["a body that never comes", 200, (_, response) => response.flushHeaders()],
    [
      "a redirect to the metadata address",
      302,
      (_, response) => response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end()
    ],
    ["a permanent redirect", 308, (_, response) => response.writeHead(308, { location: "/again" }).end()]
  ]
  it.scopedLive.each(replies)(
    "returns the status of %s after one request, and closes the connection",
    function* ([, status, reply]) {
      const { post } = yield* fetcherOver(["127.0.0.1"])
      const host = yield* make(reply)
      assert.deepStrictEqual(yield* post(request(`${host.url}/hook?a=1`)), { status, answer: "" })
      yield* host.left
      assert.deepStrictEqual(
        host.seen.map(({ headers, path }) => [path, headers["x-own"], headers["content-length"]]),
        [["/hook?a=1", "1", "2"]]
      )
    }
  )

  it.scopedLive("fails where no answer comes in time, and closes the connection", function* () {
    const { post } = yield* fetcherOver(["127.0.0.1"])
    const host = yield* make(() => undefined)
    assert.strictEqual((yield* Effect.flip(post(request(host.url, 0.3)))).reason, "timeout")
    yield* host.left
    const { gone, port } = yield* below((socket) => {
      const timer = setInterval(() => socket.write("HTTP/1.1 103 Early Hints\r\n\r\n"), 5)
      socket.on("close", () => clearInterval(timer))
    })
    assert.strictEqual((yield* Effect.flip(post(request(`http://127.0.0.1:${port}/`, 0.3)))).reason, "timeout")
    yield* gone
  })

  it.scopedLive(
    "is refused without a socket where the address is not public, by its number or by its name",
    function* () {
      const { post } = yield* fetcherOver([], { names: () => Effect.succeed(["93.184.216.34", "10.0.0.1"]) })
      const opened = yield* sockets
      for (const url of ["http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://rebound.example/"]) {
        assert.strictEqual((yield* Effect.flip(post(request(url)))).reason, "refused", url)
      }
      assert.strictEqual(opened(), 0)
    }
  )
})
