import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { Context, Effect, Layer, Schema } from "effect"
import { bundle } from "../database/EmbeddedDatabase.ts"
import { freshUrl } from "../database/Postgres.ts"

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly lines: ReadonlyArray<string>
  readonly interrupt: Effect.Effect<void>
  /** Closes our end of its stdout. */
  readonly hangUp: Effect.Effect<void>
  readonly finished: Effect.Effect<Finished>
}

const fixture = path.resolve("test/harness/gateway/CliProgram.ts")

/** The program `gateway` as a process, in an empty directory and an environment with nothing but what is given. */
export class Cli extends Context.Tag("test/Cli")<
  Cli,
  {
    readonly directory: string
    /** A migrated database of this suite's own; the commands' default. */
    readonly url: string
    readonly start: (args: ReadonlyArray<string>, environment?: Readonly<Record<string, string>>) => Running
    readonly run: (
      args: ReadonlyArray<string>,
      environment?: Readonly<Record<string, string>>
    ) => Effect.Effect<Finished>
  }
>() {
  static readonly layer = Layer.scoped(
    Cli,
    Effect.gen(function* () {
      const program = yield* bundle(fixture)
      const url = yield* freshUrl
      const directory = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(path.join(tmpdir(), "gateway-cli-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
      )
      const start = (args: ReadonlyArray<string>, environment: Readonly<Record<string, string>> = {}): Running => {
        const env = { PATH: process.env["PATH"] ?? "", DATABASE_URL: url, ...environment }
        const child = spawn(process.execPath, [program, ...args], {
          cwd: directory,
          env,
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
          hangUp: Effect.sync(() => child.stdout.destroy()),
          finished: Effect.promise(() => closed)
        }
      }
      return { directory, url, start, run: (args, environment) => start(args, environment).finished }
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

/** Runs a command that must fail with one line on stderr and nothing on stdout; the line. */
export const failure = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  environment?: Readonly<Record<string, string>>
) {
  const { run } = yield* Cli
  const { code, stderr, stdout } = yield* run(args, environment)
  const line = /^gateway: (.+)\n$/.exec(stderr)?.[1]
  if (code !== 1 || stdout !== "" || line === undefined) {
    return yield* Effect.dieMessage(`${args.join(" ")} failed badly: ${JSON.stringify({ code, stderr, stdout })}`)
  }
  return line
})
