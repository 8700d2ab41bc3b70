import cluster, { type Worker } from "node:cluster"
import { connect } from "node:net"
import path from "node:path"
import { Effect } from "effect"
import { closeLostHandoffs } from "../../src/node/ConnectionHandoffs.ts"
import { assert, describe, it } from "../harness/It.ts"
import { directoryWith } from "../harness/temporary.ts"

/** Takes no connection any more once it is told so. */
const program = `
  import { createServer } from "node:net"
  createServer().listen(0, "127.0.0.1")
  process.on("message", () => process.send("busy", () => { for (;;); }))
`

const once = <A>(register: (done: (value: A) => void) => void) =>
  Effect.async<A>((resume) => register((value) => resume(Effect.succeed(value))))

const busyWorker = Effect.gen(function* () {
  const directory = yield* directoryWith({ "worker.mjs": program })
  cluster.setupPrimary({ exec: path.join(directory, "worker.mjs"), args: [], execArgv: [] })
  const worker = yield* Effect.acquireRelease(
    Effect.sync(() => cluster.fork()),
    (made) => Effect.sync(() => made.process.kill("SIGKILL"))
  )
  return {
    worker,
    port: yield* once<number>((done) => worker.once("listening", ({ port }) => done(port)))
  }
})

/** Whether a client's connection is closed when the worker dies to which it was handed. */
const isClosed = (prepare: (worker: Worker) => void) =>
  Effect.gen(function* () {
    const { port, worker } = yield* busyWorker
    prepare(worker)
    yield* once<unknown>((done) => worker.once("message", done).send("be busy"))
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() =>
        connect(port, "127.0.0.1")
          .on("error", () => {})
          .resume()
      ),
      (made) => Effect.sync(() => made.destroy())
    )
    yield* once<void>((done) => socket.once("connect", () => done()))
    // The main process accepts it, and hands it over.
    yield* Effect.sleep("500 millis")
    worker.process.kill("SIGKILL")
    yield* once<unknown>((done) => worker.once("exit", done))
    yield* Effect.sleep("500 millis")
    return socket.closed
  })

describe("a connection in handoff to a worker that dies", () => {
  it.scopedLive("stays open in Node itself", function* () {
    assert.isFalse(yield* isClosed(() => {}))
  })

  it.scopedLive("is closed", function* () {
    assert.isTrue(yield* isClosed(closeLostHandoffs))
  })
})
