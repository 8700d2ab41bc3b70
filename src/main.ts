import cluster from "node:cluster"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Option } from "effect"
import { runToExitCode } from "./ExitCode.ts"
import { OutgoingProxies, setAddressTimeout } from "./node/Outgoing.ts"
import { proxiesOf, readSettings } from "./Settings.ts"
import { readEnvironment } from "./settings/Environment.ts"

// Resolves the program's path now, so replacement workers run the same program even after a new build.
if (cluster.isPrimary) cluster.setupPrimary({ exec: fileURLToPath(import.meta.url), args: ["serve"] })

let code = 0
const recordCode = (next: number) => {
  code ||= next
}

const gateway = (workers: string | undefined) =>
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    const settings = yield* readSettings(workers === undefined ? environment : { ...environment, WORKERS: workers })
    const { serve } = yield* Effect.promise(() => import("./Serve.ts"))
    return recordCode(yield* serve(settings))
  })

const commands = Effect.flatMap(
  Effect.promise(() => import("./cli.ts")),
  ({ run }) => run(process.argv, { serve: ({ workers }) => gateway(workers) })
)

/**
 * Recognizes `serve` with at most `--workers`, so the other commands need not be loaded, which saves memory. Otherwise
 * undefined.
 */
const parsePlainServe = () => {
  const [command, ...args] = process.argv.slice(2)
  try {
    const { workers } = parseArgs({ args, options: { workers: { type: "string" } } }).values
    return command === "serve" && workers !== "" ? { workers } : undefined
  } catch {
    return undefined
  }
}
const serveOptions = parsePlainServe()

const program = Effect.map(
  serveOptions === undefined ? commands : runToExitCode(gateway(serveOptions.workers)),
  recordCode
)

/** Runs the program with the proxies of the settings. Ignores invalid settings, because the program itself reports them. */
const throughProxies = Effect.flatMap(
  Effect.option(Effect.flatMap(readEnvironment(), readSettings)),
  Option.match({
    onNone: () => program,
    onSome: (settings) => Effect.provideService(program, OutgoingProxies, proxiesOf(settings))
  })
)

NodeRuntime.runMain(Effect.zipRight(setAddressTimeout, throughProxies), {
  disableErrorReporting: true,
  disablePrettyLogger: true,
  // An interruption by a signal is not a failure.
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause) ? code : 1)
})
