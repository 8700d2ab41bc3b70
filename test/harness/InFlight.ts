import { Effect } from "effect"
import type { InFlight, RunningRequest } from "../../src/services/runtime/InFlight.ts"

const request: RunningRequest = { requestId: "req_1", surface: "chat", model: "m", hold: undefined }

/** Runs the work as a request that a stop waits for. */
export const tracked = <A, E, R>(inFlight: typeof InFlight.Service, work: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => inFlight.enter(() => request)),
    () => work,
    (leave) => Effect.sync(leave)
  )
