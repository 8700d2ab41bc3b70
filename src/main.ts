import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { serve } from "./Serving.ts"
import { readEnvironment, readSettings } from "./Settings.ts"

NodeRuntime.runMain(
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    return yield* serve(yield* readSettings(environment), environment)
  }),
  { disablePrettyLogger: true }
)
