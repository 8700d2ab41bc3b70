import { spawn } from "node:child_process"
import { Console as NodeConsole } from "node:console"
import path from "node:path"
import { Console, Context, Effect, Layer, Option, Predicate, Schema } from "effect"
import { run } from "../../src/cli.ts"
import { bundle } from "../database/EmbeddedDatabase.ts"
import { freshUrl } from "../harness/database/Postgres.ts"
import { program } from "../harness/gateway/GatewayProcess.ts"
import { temporaryDirectory } from "../harness/temporary.ts"

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly lines: ReadonlyArray<string>
  readonly interrupt: Effect.Effect<void>
  readonly kill: Effect.Effect<void>
  /** Closes our end of its stdout. */
  readonly hangUp: Effect.Effect<void>
  readonly finished: Effect.Effect<Finished>
}

type Environment = Readonly<Record<string, string>>

/** The program whose `serve` serves nothing, until the scope ends. */
export const cliProgram = Effect.suspend(() => bundle(path.resolve("test/cli/CliProgram.ts")))

const oneAtATime = Effect.unsafeMakeSemaphore(1)

const replace = <A extends object, K extends keyof A>(target: A, key: K, value: A[K]) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const own = target[key]
      target[key] = value
      return own
    }),
    (own) => Effect.sync(() => (target[key] = own))
  )

/** Runs a command in this process, as if it had these variables, this directory and these streams to itself. */
const runHere = (args: ReadonlyArray<string>, directory: string, env: Environment): Effect.Effect<Finished> =>
  Effect.gen(function* () {
    let stdout = ""
    let stderr = ""
    const writeOut = (chunk: unknown, ...rest: ReadonlyArray<unknown>) => {
      stdout += String(chunk)
      for (const done of rest) if (Predicate.isFunction(done)) done()
      return true
    }
    const writeErr = (chunk: unknown) => {
      stderr += String(chunk)
      return true
    }
    const own = process.cwd()
    yield* Effect.acquireRelease(
      Effect.sync(() => process.chdir(directory)),
      () => Effect.sync(() => process.chdir(own))
    )
    yield* replace(process, "env", { ...env })
    yield* replace(process.stdout, "write", writeOut)
    yield* replace(process.stderr, "write", writeErr)
    const unsafe = new NodeConsole(process.stdout, process.stderr)
    const console: Console.Console = {
      ...(yield* Console.consoleWith(Effect.succeed)),
      log: (...texts) => Effect.sync(() => unsafe.log(...texts)),
      error: (...texts) => Effect.sync(() => unsafe.error(...texts)),
      unsafe
    }
    const serve = () => Effect.dieMessage("nothing is to be served")
    const program = Effect.withConsole(run(["node", "gateway", ...args], { serve }), console)
    // Its own runtime: layers of this one's memo map would outlive the command.
    const code = yield* Effect.promise(() => Effect.runPromise(program))
    return { code, stdout, stderr }
  }).pipe(Effect.scoped, oneAtATime.withPermits(1))

/** The program `gateway` in an empty directory and an environment with nothing but what is given. */
export class Cli extends Context.Tag("test/Cli")<
  Cli,
  {
    readonly directory: string
    /** A migrated database of this suite's own; the commands' default. */
    readonly url: string
    /** A process of its own, of the built program unless another is named. */
    readonly start: (args: ReadonlyArray<string>, environment?: Environment, entry?: string) => Effect.Effect<Running>
    readonly run: (args: ReadonlyArray<string>, environment?: Environment) => Effect.Effect<Finished>
  }
>() {
  static readonly layer = Layer.scoped(
    Cli,
    Effect.gen(function* () {
      const url = yield* freshUrl
      const directory = yield* temporaryDirectory
      const variables = (given: Environment = {}) => ({ PATH: process.env["PATH"] ?? "", DATABASE_URL: url, ...given })
      const start = (args: ReadonlyArray<string>, environment?: Environment, entry = program) =>
        Effect.sync((): Running => {
          const child = spawn(process.execPath, [entry, ...args], {
            cwd: directory,
            env: variables(environment),
            stdio: ["ignore", "pipe", "pipe"]
          })
          let stdout = ""
          let stderr = ""
          const lines: Array<string> = []
          child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
            stdout += chunk
            lines.splice(0, lines.length, ...stdout.split("\n").slice(0, -1))
          })
          child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk))
          const closed = new Promise<Finished>((resolve) => {
            child.on("close", (code) => resolve({ code, stdout, stderr }))
          })
          return {
            lines,
            interrupt: Effect.sync(() => child.kill("SIGINT")),
            kill: Effect.sync(() => child.kill("SIGKILL")),
            hangUp: Effect.sync(() => child.stdout.destroy()),
            finished: Effect.promise(() => closed)
          }
        })
      return {
        directory,
        url,
        start,
        run: (args, environment) => Effect.suspend(() => runHere(args, directory, variables(environment)))
      }
    })
  )
}

/** Runs a command that must succeed in silence, and answers its stdout. */
export const text = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
  const { run } = yield* Cli
  const { code, stderr, stdout } = yield* run(args)
  if (code !== 0 || stderr !== "") return yield* Effect.dieMessage(`${args.join(" ")}: ${code} ${stderr}`)
  return stdout
})

const Json = Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))

/** As `text`, with `--json`: stdout is one JSON object and nothing else. */
export const json = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(text(...args, "--json"), (stdout) => Effect.orDie(Schema.decode(Json)(stdout)))

const List = Schema.parseJson(
  Schema.Struct({ data: Schema.Array(Schema.Record({ key: Schema.String, value: Schema.Unknown })) })
)

export const list = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(text(...args, "--json"), (stdout) =>
    Effect.map(Effect.orDie(Schema.decode(List)(stdout)), ({ data }) => data)
  )

const failureWith = (expectedCode: number) =>
  Effect.fnUntraced(function* (args: ReadonlyArray<string>, environment?: Readonly<Record<string, string>>) {
    const { run } = yield* Cli
    const { code, stderr, stdout } = yield* run(args, environment)
    const line = /^gateway: (.+)\n$/.exec(stderr)?.[1] ?? errorIn(stderr)
    if (code !== expectedCode || stdout !== "" || line === undefined) {
      return yield* Effect.dieMessage(`${args.join(" ")} failed badly: ${JSON.stringify({ code, stderr, stdout })}`)
    }
    return line
  })

const Failure = Schema.parseJson(
  Schema.Struct({ error: Schema.Struct({ message: Schema.String, type: Schema.String }) })
)

const errorIn = (stderr: string) =>
  Option.getOrUndefined(Option.map(Schema.decodeUnknownOption(Failure)(stderr), ({ error }) => error.message))

/** Runs a command that must fail with one line on stderr and nothing on stdout. Returns the message. */
export const failure = failureWith(1)

/** As `failure`, for a command line that is wrong. */
export const misuse = failureWith(2)
