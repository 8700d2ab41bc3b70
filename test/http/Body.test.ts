import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { RateLimited } from "../../src/domain/Failure.ts"
import { type Incoming, readJson } from "../../src/http/Body.ts"
import * as EventLoop from "../../src/services/EventLoop.ts"

const mib = 1024 * 1024
const limit = 4 * mib
const text = (bytes: number) => JSON.stringify("x".repeat(bytes - 2))

/** A request of which nothing has come yet, and what it asked room for. */
const arriving = (headers: IncomingMessage["headers"], room: Incoming["room"] = () => Effect.void) => {
  const request = new IncomingMessage(new Socket())
  Object.assign(request.headers, headers)
  const asked: Array<number> = []
  const incoming: Incoming = {
    request,
    room: (bytes) =>
      Effect.zipRight(
        Effect.sync(() => asked.push(bytes)),
        room(bytes)
      )
  }
  return { asked, incoming, request }
}

const send = (request: IncomingMessage, body: string) => {
  for (let at = 0; at < body.length; at += mib / 4) request.push(body.slice(at, at + mib / 4))
  request.push(null)
}

describe("a body", () => {
  for (const [what, bytes, headers, asked] of [
    ["that is small", mib, { "content-length": `${mib}` }, []],
    ["that is large", 2 * mib, { "content-length": `${2 * mib}` }, [2 * mib]],
    ["that is small and does not say so", mib, { "transfer-encoding": "chunked" }, []],
    ["that is large and does not say so", 2 * mib, { "transfer-encoding": "chunked" }, [limit]],
    ["as large as it may be", limit, { "transfer-encoding": "chunked" }, [limit]]
  ] as const) {
    it.effect(`${what} asks for as much room as it needs, and is read whole`, () =>
      Effect.gen(function* () {
        const { asked: all, incoming, request } = arriving(headers)
        const body = text(bytes)
        send(request, body)
        assert.isTrue((yield* readJson(incoming, limit)) === JSON.parse(body))
        assert.deepStrictEqual<ReadonlyArray<number>>(all, asked)
      })
    )
  }

  for (const [what, headers] of [
    ["says so", { "content-length": `${limit + 1}` }],
    ["does not say so", { "transfer-encoding": "chunked" }]
  ] as const) {
    it.effect(`that is too large and ${what} is refused`, () =>
      Effect.gen(function* () {
        const { incoming, request } = arriving(headers)
        send(request, text(limit + 1))
        assert.strictEqual((yield* Effect.flip(readJson(incoming, limit)))._tag, "BodyTooLarge")
      })
    )
  }

  it.effect("is no longer than a limit below what is small", () =>
    Effect.gen(function* () {
      const { incoming, request } = arriving({ "transfer-encoding": "chunked" })
      send(request, text(2_000))
      assert.strictEqual((yield* Effect.flip(readJson(incoming, 1_000)))._tag, "BodyTooLarge")
    })
  )

  it.effect("stays unread for as long as it finds no room", () =>
    Effect.gen(function* () {
      const { asked, incoming, request } = arriving({ "transfer-encoding": "chunked" }, () => Effect.never)
      send(request, text(limit))
      const reading = yield* Effect.fork(readJson(incoming, limit))
      yield* Effect.repeat(EventLoop.turn, { until: () => asked.length > 0 })
      for (let turns = 0; turns < 5; turns++) yield* EventLoop.turn
      assert.isFalse(request.readableFlowing)
      assert.isAbove(request.readableLength, 2 * mib)
      yield* Fiber.interrupt(reading)
      assert.isTrue(request.readableFlowing)
    })
  )

  it.effect("that found no room is thrown away", () =>
    Effect.gen(function* () {
      const { incoming, request } = arriving({ "transfer-encoding": "chunked" }, () => Effect.fail(new RateLimited()))
      send(request, text(limit))
      assert.strictEqual((yield* Effect.flip(readJson(incoming, limit)))._tag, "RateLimited")
      assert.isTrue(request.readableFlowing)
    })
  )
})
