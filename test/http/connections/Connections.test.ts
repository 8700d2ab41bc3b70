import http from "node:http"
import { connect, createServer, Socket } from "node:net"
import { Effect, Queue } from "effect"
import { Connections } from "../../../src/http/connections/ConnectionLimits.ts"
import { sentBytes } from "../../../src/node/Outgoing.ts"
import { waitUntil } from "../../harness/database/Money.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { listen } from "../../harness/Listening.ts"

const mib = 1024 * 1024

/** A client that has been sent much more than the system keeps for it, in one chunk. */
const serveTo = Effect.gen(function* () {
  const connections = new Connections({ total: 10, perAddress: 10 })
  const accepted = yield* Queue.unbounded<Socket>()
  const server = createServer((socket) => {
    connections.add(socket.on("error", () => {}))
    socket.write(Buffer.alloc(64 * mib))
    accepted.unsafeOffer(socket)
  })
  const port = yield* listen(server)
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => connect(port, "127.0.0.1").pause()),
    (socket) => Effect.sync(() => socket.destroy())
  )
  const socket = yield* Queue.take(accepted)
  let wanted = 0
  client.on("data", (chunk) => {
    wanted -= chunk.length
    if (wanted <= 0) client.pause()
  })
  client.pause()
  const read = (bytes: number) =>
    Effect.suspend(() => {
      wanted = bytes
      client.resume()
      return waitUntil(() => wanted <= 0)
    })
  const passSeconds = (count: number) => {
    for (let second = 0; second < count; second++) connections.inspect()
  }
  return { passSeconds, read, socket }
})

describe("a client that is sent more than it reads", () => {
  it.scopedLive("is disconnected after 180 seconds without reading", function* () {
    const { passSeconds, socket } = yield* serveTo
    passSeconds(180)
    assert.isFalse(socket.destroyed)
    passSeconds(1)
    assert.isTrue(socket.destroyed)
  })

  it.scopedLive("stays connected if it reads the recommended 16 kB a second", function* () {
    const { passSeconds, read, socket } = yield* serveTo
    for (let nth = 0; nth < 20; nth++) {
      passSeconds(180)
      const before = sentBytes(socket)
      yield* read(180 * 16_000)
      yield* waitUntil(() => sentBytes(socket) > before)
    }
    assert.isFalse(socket.destroyed)
    passSeconds(181)
    assert.isTrue(socket.destroyed)
  })

  it.scopedLive("stays connected after it has read all, however long the next answer takes", function* () {
    const { passSeconds, read, socket } = yield* serveTo
    passSeconds(170)
    yield* read(64 * mib)
    yield* waitUntil(() => socket.writableLength === 0)
    passSeconds(1000)
    assert.isFalse(socket.destroyed)
  })
})

describe("a client whose answer is on its way", () => {
  it.scopedLive("gives way to a new connection once it is 5 seconds behind", function* () {
    const connections = new Connections({ total: 1, perAddress: 1 })
    const requested = yield* Queue.unbounded<Socket>()
    const server = http.createServer((request, response) => {
      connections.begin(request.socket, { request, response })
      response.end(Buffer.alloc(64 * mib))
      requested.unsafeOffer(request.socket)
    })
    server.on("connection", (socket) => connections.add(socket.on("error", () => {})))
    const port = yield* listen(server)
    yield* Effect.acquireRelease(
      Effect.sync(() => http.get({ port }, (response) => void response.pause()).on("error", () => {})),
      (request) => Effect.sync(() => request.destroy())
    )
    const socket = yield* Queue.take(requested)
    yield* waitUntil(() => sentBytes(socket) > 0)
    connections.inspect()
    for (let second = 0; second < 4; second++) connections.inspect()
    assert.isUndefined(connections.add(new Socket()))
    connections.inspect()
    assert.isDefined(connections.add(new Socket()))
    assert.isTrue(socket.destroyed)
  })
})
