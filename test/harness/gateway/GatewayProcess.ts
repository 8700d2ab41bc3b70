/** `start` runs the built gateway as a process, and records its output and its end. */

import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Deferred, Effect, type Scope } from "effect"
import { isAlive } from "../temporary.ts"

/** The path of the built program, which `npm test` builds before the tests. */
export const program = fileURLToPath(new URL("../../../dist/gateway.js", import.meta.url))

export interface GatewayProcess {
  /** `http://127.0.0.1:PORT`, without `/v1`. */
  readonly url: string
  readonly process: ChildProcess
  /** Returns all output so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
  /** Waits for the end of the process and returns its exit code or signal. */
  readonly ended: Effect.Effect<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
}

/** The process ended before it served requests. The message contains its output. */
export class NotStarted extends Data.TaggedError("NotStarted")<{ readonly message: string }> {}

export interface StartOptions {
  readonly env: Readonly<Record<string, string>>
  /** Another program than the built one, such as one that ends at a failpoint. */
  readonly entry?: string
  /** A command that runs the gateway in a process group of its own. Signals are sent to the whole group. */
  readonly command?: { readonly line: readonly [string, ...ReadonlyArray<string>]; readonly cwd: string }
}

/** Excludes the developer's environment, which must not affect a test. */
const bareEnvironment = { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", TZ: "UTC" }

/** Starts a gateway process on a free port, and waits until it serves requests. The process is killed with the scope. */
export const start = (options: StartOptions): Effect.Effect<GatewayProcess, NotStarted, Scope.Scope> =>
  Effect.gen(function* () {
    const { command: group, entry = program } = options
    if (!existsSync(entry)) return yield* new NotStarted({ message: `${entry} is missing: run npm run build` })
    const [file, ...args] = group?.line ?? [process.execPath, entry, "serve"]
    const send = (running: ChildProcess, signal: NodeJS.Signals) => {
      if (group === undefined) return running.kill(signal)
      const { pid } = running
      return pid !== undefined && isAlive(-pid) && process.kill(-pid, signal)
    }
    const ended = yield* Deferred.make<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>()
    const ready = yield* Deferred.make<string, NotStarted>()
    let stdout = ""
    let stderr = ""
    const child = yield* Effect.acquireRelease(
      Effect.sync(() =>
        spawn(file, args, {
          env: { ...bareEnvironment, PORT: "0", ...options.env },
          stdio: ["ignore", "pipe", "pipe"],
          ...(group === undefined ? {} : { cwd: group.cwd, detached: true })
        })
      ),
      (running) =>
        Effect.zipRight(
          Effect.sync(() => send(running, "SIGKILL")),
          Deferred.await(ended)
        )
    )
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
      const address = /listening on (http:\/\/\S+)\/v1/.exec(stdout)?.[1]
      if (address !== undefined) Deferred.unsafeDone(ready, Effect.succeed(address))
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.on("close", (code, signal) => {
      Deferred.unsafeDone(ended, Effect.succeed({ code, signal }))
      Deferred.unsafeDone(
        ready,
        new NotStarted({ message: `the gateway ended with ${code ?? signal}:\n${stdout}${stderr}` })
      )
    })
    return {
      url: yield* Deferred.await(ready),
      process: child,
      stdout: () => stdout,
      stderr: () => stderr,
      signal: (signal) => Effect.sync(() => send(child, signal)),
      ended: Deferred.await(ended)
    }
  })

const staticImport = /(?:\bfrom|\bimport)\s*"(\.[^"]+\.js)"/g
const anyImport = /(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+\.js)"/g

const follow = (first: string, imports: RegExp): ReadonlySet<string> => {
  const loaded = new Set([first])
  for (const file of loaded) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(imports)) {
      const imported = path.resolve(path.dirname(file), name)
      if (existsSync(imported)) loaded.add(imported)
    }
  }
  return loaded
}

/** Returns the scripts of the built program. The same directory may contain scripts of earlier builds. */
export const builtFiles = (): ReadonlyArray<string> => [...follow(program, anyImport)].slice(1)

/** Returns the files that the program loads together with this one, without those that it loads later. */
export const filesLoadedBy = (first: string): ReadonlySet<string> => follow(first, staticImport)

/** Returns the files of the built program that contain the text, even if a line break splits it. */
export const filesWith = (text: string): ReadonlyArray<string> =>
  builtFiles().filter((file) => readFileSync(file, "utf8").replaceAll("\\\n", "").includes(text))
