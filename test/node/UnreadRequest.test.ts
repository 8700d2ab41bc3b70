import { createServer, type IncomingMessage } from "node:http"
import { NodeStream } from "@effect/platform-node"
import { Effect } from "effect"
import { keepConnectionOfUnread } from "../../src/node/UnreadRequest.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"

/** The status of a request whose body is over the limit of the platform's reader. */
const send = (prepare: (request: IncomingMessage) => void) =>
  Effect.gen(function* () {
    const server = createServer((request, response) => {
      prepare(request)
      const read = NodeStream.toString(() => request, { maxBytes: 10, onFailure: String })
      Effect.runFork(Effect.tapError(read, () => Effect.sync(() => response.writeHead(413).end())))
    })
    const port = yield* listen(server)
    const response = yield* Effect.tryPromise(() =>
      fetch(`http://127.0.0.1:${port}`, { method: "POST", body: Buffer.alloc(1024 * 1024, "x") })
    )
    return response.status
  })

describe("a request that the platform stops reading", () => {
  it.scopedLive("gets no response from the platform itself", function* () {
    assert.isTrue(yield* Effect.isFailure(send(() => {})))
  })

  it.scopedLive("gets its response over a connection that is kept", function* () {
    assert.strictEqual(yield* send(keepConnectionOfUnread), 413)
  })
})
