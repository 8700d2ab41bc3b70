import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { serve } from "../../../src/Serve.ts"
import { readEnvironment, readSettings } from "../../../src/Settings.ts"
import { Failpoint } from "../../../src/services/runtime/Failpoint.ts"

const fail = () => {
  throw new TypeError("planted")
}

// Ends the process as an error in a callback of the runtime's would.
process.on("SIGUSR2", fail)

/** The gateway, except that a bug is planted in every chat after its hold. */
NodeRuntime.runMain(
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    return yield* serve(yield* readSettings(environment), environment)
  }).pipe(Effect.provideService(Failpoint, { reach: () => Effect.sync(fail) })),
  { disablePrettyLogger: true }
)
