import cluster from "node:cluster"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { NodeRuntime } from "@effect/platform-node"
import { Cause, Effect, Exit, Option } from "effect"
import { exitCode } from "./ExitCode.ts"
import { OutgoingProxies, setAddressTimeout } from "./node/Outgoing.ts"
import { proxiesOf, readSettings } from "./Settings.ts"
import { readEnvironment } from "./settings/Environment.ts"

// A worker that takes another's place runs the same program, whatever has been built meanwhile.
if (cluster.isPrimary) cluster.setupPrimary({ exec: fileURLToPath(import.meta.url), args: ["serve"] })

let code = 0
const endWith = (ended: number) => {
  code ||= ended
}

const gateway = (workers: string | undefined) =>
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    const settings = yield* readSettings(workers === undefined ? environment : { ...environment, WORKERS: workers })
    const { serve } = yield* Effect.promise(() => import("./Serve.ts"))
    return endWith(yield* serve(settings))
  })

const commands = Effect.flatMap(
  Effect.promise(() => import("./cli.ts")),
  ({ run }) => run(process.argv, { serve: ({ workers }) => gateway(workers) })
)

/** A gateway keeps in memory what it has loaded, so `serve` loads no commands. Other options and mistakes need them. */
const plainServe = () => {
  const [command, ...args] = process.argv.slice(2)
  try {
    const { workers } = parseArgs({ args, options: { workers: { type: "string" } } }).values
    return command === "serve" && workers !== "" ? { workers } : undefined
  } catch {
    return undefined
  }
}
const plain = plainServe()

const program = Effect.map(plain === undefined ? commands : exitCode(gateway(plain.workers)), endWith)

/** Ignores invalid settings: the program itself reports them. */
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
  // A stop by signal is no failure.
  teardown: (exit, onExit) => onExit(Exit.isSuccess(exit) || Cause.isInterruptedOnly(exit.cause) ? code : 1)
})
