import type { AddressInfo } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { listener } from "../../src/http/Listener.ts"
import { assertRefused, badRequest } from "../support/Calls.ts"
import { answersIn, openTo } from "../support/RawSocket.ts"

/** The gateway's own listener, in more of a hurry; it looks at its connections every five seconds all the same. */
const hurried = Effect.acquireRelease(
  Effect.tap(listener, (server) => {
    server.headersTimeout = 200
    server.requestTimeout = 200
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
).pipe(
  Effect.flatMap((server) =>
    Effect.async<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address: AddressInfo | string | null = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed(`http://127.0.0.1:${port}`))
      })
    })
  )
)

const slow = [
  "GET /v1/models HTTP/1.1\r\nHo",
  "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123"
]

describe("requests that take too long to come", () => {
  it.scopedLive("are refused in the envelope, and their connection ends", () =>
    Effect.gen(function* () {
      const url = yield* hurried
      yield* Effect.forEach(
        slow,
        (start) =>
          Effect.gen(function* () {
            const connection = yield* openTo(url)
            yield* connection.write(start)
            const [refusal, ...more] = answersIn(yield* connection.closed)
            if (refusal === undefined) return assert.fail(`nothing was answered to ${start}`)
            assertRefused(refusal, badRequest("The request was not received in time."))
            assert.isEmpty(more)
          }),
        { concurrency: "unbounded" }
      )
    })
  )
})
