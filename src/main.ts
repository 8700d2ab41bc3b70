import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit } from "effect"
import { exitCode } from "./ExitCode.ts"
import { readEnvironment, readSettings } from "./Settings.ts"

const gateway = Effect.gen(function* () {
  const environment = yield* readEnvironment()
  const settings = yield* readSettings(environment)
  const { serve } = yield* Effect.promise(() => import("./Serving.ts"))
  return yield* serve(settings, environment)
})

const commands = Effect.flatMap(
  Effect.promise(() => import("./cli.ts")),
  ({ run }) => run(process.argv, { serve: () => gateway })
)

// A gateway runs for long, and keeps in memory whatever it has loaded.
const isPlainServe = process.argv.slice(2).join(" ") === "serve"

let code = 0

NodeRuntime.runMain(
  Effect.map(isPlainServe ? exitCode(gateway) : commands, (ended) => {
    code = ended
  }),
  {
    disableErrorReporting: true,
    disablePrettyLogger: true,
    // A signal interrupts; having stopped as told is no failure.
    teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause) ? code : 1)
  }
)
