import { writeFileSync } from "node:fs"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { serve } from "../../../src/Serve.ts"
import { readEnvironment, readSettings } from "../../../src/Settings.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"

const { FAILPOINT, FAILPOINT_MARKER = "", FAILPOINT_TURN = "1" } = process.env

let reached = 0

/**
 * The gateway, except that it is killed where `FAILPOINT` says, the first time or that which `FAILPOINT_TURN` says,
 * after it left a sign at `FAILPOINT_MARKER`.
 */
const deadly = {
  reach: (name: FailpointName) =>
    Effect.sync(() => {
      if (name !== FAILPOINT || ++reached < Number(FAILPOINT_TURN)) return
      writeFileSync(FAILPOINT_MARKER, name)
      process.kill(process.pid, "SIGKILL")
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    })
}

NodeRuntime.runMain(
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    return yield* serve(yield* readSettings(environment), environment)
  }).pipe(Effect.provideService(Failpoint, deadly)),
  { disablePrettyLogger: true }
)
