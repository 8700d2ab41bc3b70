import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { run } from "./cli.ts"
import { serve } from "./Serving.ts"
import { readEnvironment, readSettings } from "./Settings.ts"

const gateway = Effect.gen(function* () {
  const environment = yield* readEnvironment()
  return yield* serve(yield* readSettings(environment), environment)
})

let code = 0

NodeRuntime.runMain(
  Effect.map(run(process.argv, { serve: () => gateway }), (ended) => {
    code = ended
  }),
  {
    disableErrorReporting: true,
    disablePrettyLogger: true,
    // A signal interrupts; having stopped as told is no failure.
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause) ? code : 1)
  }
)
