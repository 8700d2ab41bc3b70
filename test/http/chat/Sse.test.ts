import { IncomingMessage, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { Effect, Fiber } from "effect"
import { vi } from "vitest"
import { makeSink } from "../../../src/http/chat/Sse.ts"
import { ClientDeparture } from "../../../src/services/runtime/Deadlines.ts"
import { assert, describe, it } from "../../harness/It.ts"

const encoder = { encode: () => "word ".repeat(20_000), finish: () => "", error: () => "" }

/** A stream whose client takes nothing but where the test says so, on a clock that the test sets. */
const open = Effect.gen(function* () {
  let now = 0
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now)
  yield* Effect.addFinalizer(() => Effect.sync(() => clock.mockRestore()))
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const sink = makeSink({ response, headers: () => ({}), encoder, departure: new ClientDeparture() })
  yield* sink.open
  const write = Effect.zipLeft(Effect.fork(sink.write([])), Effect.yieldNow())
  return {
    response,
    sink,
    write,
    pass: (millis: number) => void (now += millis),
    /** Writes, and has the client take it after so long. */
    writeFor: Effect.fnUntraced(function* (millis: number) {
      const writing = yield* write
      now += millis
      response.emit("drain")
      yield* Fiber.join(writing)
    })
  }
})

describe("a client that keeps its stream waiting", () => {
  it.scoped("has not departed where a network would keep it waiting too", function* () {
    const { pass, response, sink, write, writeFor } = yield* open
    yield* writeFor(900)
    yield* write
    pass(90)
    assert.isFalse(sink.disconnectStalled())
    assert.isFalse(response.destroyed)
  })

  it.scoped("has departed where it waits long, although most of the time it did not", function* () {
    const { pass, response, sink, write } = yield* open
    pass(60_000)
    yield* write
    pass(1_001)
    assert.isTrue(sink.disconnectStalled())
    assert.isTrue(response.destroyed)
  })

  it.scoped("has departed where it did so for more than a quarter of the time, although it reads now", function* () {
    const { pass, sink, writeFor } = yield* open
    yield* writeFor(2_000)
    pass(6_001)
    assert.isFalse(sink.disconnectStalled())
    yield* writeFor(2_000)
    assert.isTrue(sink.disconnectStalled())
  })
})
