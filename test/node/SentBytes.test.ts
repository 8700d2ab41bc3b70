import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"
import { sentBytes } from "../../src/node/Outgoing.ts"
import { eventually } from "../harness/database/Money.ts"
import { assert, describe, it } from "../harness/It.ts"
import { listen } from "../harness/Listening.ts"

const size = 32 * 1024 * 1024

describe("one large chunk that a client reads slowly", () => {
  it.scopedLive("is sent in steps, although Node's own counters do not change", function* () {
    const sockets: Array<Socket> = []
    const server = createServer((socket) => {
      sockets.push(socket)
      socket.on("error", () => {}).write(Buffer.alloc(size))
    })
    const port = yield* listen(server)
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => connect(port, "127.0.0.1")),
      (socket) => Effect.sync(() => socket.destroy())
    )
    let taken = 0
    client.on("data", (chunk) => {
      const isHalf = taken < size / 2 && taken + chunk.length >= size / 2
      taken += chunk.length
      if (isHalf) client.pause()
    })
    yield* eventually(
      Effect.sync(() => taken),
      (bytes) => bytes >= size / 2
    )
    const [socket] = sockets
    if (socket === undefined) return assert.fail("nobody connected")
    assert.isAtLeast(sentBytes(socket), size / 2)
    assert.isBelow(sentBytes(socket), size)
    assert.strictEqual(socket.bytesWritten, size)
    assert.strictEqual(socket.writableLength, size)
    client.resume()
    yield* eventually(
      Effect.sync(() => sentBytes(socket)),
      (bytes) => bytes === size
    )
    assert.strictEqual(socket.writableLength, 0)
  })
})
