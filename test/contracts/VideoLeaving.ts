import { assert } from "@effect/vitest"
import { Effect, Fiber, type Scope, Stream } from "effect"
import type { VideoAdapter, VideoHandle } from "../../src/services/routing/Provider.ts"
import { type Clip, type Host, request } from "./VideoHarness.ts"

export type Check = (
  name: string,
  body: (adapter: VideoAdapter, host: Host) => Effect.Effect<unknown, unknown, Scope.Scope>
) => void

export const base64 = (all: Uint8Array) => Buffer.from(all).toString("base64")

export const downloaded = (adapter: VideoAdapter, host: Host, handle: VideoHandle) =>
  Effect.map(Stream.runCollect(adapter.download(host.route, handle)), (chunks) => base64(Buffer.concat([...chunks])))

/** Renders that nobody wants any more, and handles that name none. */
export const videoLeavingContract = (clip: Clip, check: Check): void => {
  check("a handle that is none is a failure, and asks nobody", (adapter, host) =>
    Effect.gen(function* () {
      for (const handle of ["", "null", "{}", '{"id":1}', "no JSON"]) {
        const failures = [
          yield* Effect.flip(adapter.poll(host.route, handle)),
          yield* Effect.flip(downloaded(adapter, host, handle)),
          ...(adapter.cancel === undefined ? [] : [yield* Effect.flip(adapter.cancel(host.route, handle))])
        ]
        for (const failure of failures) assert.deepStrictEqual([failure.class, failure.status], ["retry", undefined])
      }
    })
  )

  check("a render is given up, also one that is over", (adapter, host) =>
    Effect.gen(function* () {
      if (adapter.cancel === undefined) return
      const handle = yield* adapter.submit(host.route, request())
      yield* adapter.cancel(host.route, handle)
      yield* host.cancelled
      yield* host.finishes(clip)
      yield* adapter.cancel(host.route, handle)
    })
  )

  check("interrupting a call lets go of it", (adapter, host) =>
    Effect.gen(function* () {
      const { holds, route } = host
      if (holds === undefined) return
      const cut = Effect.fnUntraced(function* (
        step: "submit" | "poll" | "result",
        call: Effect.Effect<unknown, unknown>
      ) {
        const { arrived, gone } = yield* holds(step)
        const calling = yield* Effect.fork(call)
        yield* arrived
        yield* Fiber.interrupt(calling)
        yield* gone
      })
      yield* cut("submit", adapter.submit(route, request()))
      const handle = yield* adapter.submit(route, request())
      yield* cut("poll", adapter.poll(route, handle))
      yield* host.finishes(clip)
      yield* cut("result", adapter.poll(route, handle))
      yield* cut("result", downloaded(adapter, host, handle))
      assert.strictEqual(yield* downloaded(adapter, host, handle), base64(clip.bytes))
    })
  )
}
