import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { run } from "./cli.ts"
import { serve } from "./Serving.ts"
import { readEnvironment, readSettings } from "./Settings.ts"

let code = 0
const endWith = (ended: number) => {
  code ||= ended
}

const gateway = (workers: string | undefined) =>
  Effect.gen(function* () {
    const given = yield* readEnvironment()
    const environment = workers === undefined ? given : { ...given, WORKERS: workers }
    return yield* serve(yield* readSettings(environment), environment)
  })

NodeRuntime.runMain(
  Effect.map(run(process.argv, { serve: ({ workers }) => Effect.map(gateway(workers), endWith) }), endWith),
  {
    disableErrorReporting: true,
    disablePrettyLogger: true,
    // A signal interrupts; having stopped as told is no failure.
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause) ? code : 1)
  }
)
