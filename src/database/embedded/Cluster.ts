import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { isProcessAlive } from "../../services/runtime/System.ts"
import { type Binaries, EmbeddedUnavailable, perform, type Runner, run } from "./Programs.ts"

export const user = "postgres"
export const database = "gateway"

export const dataIn = (home: string) => path.join(home, "data")

const removeAbandoned = (home: string) => {
  for (const name of readdirSync(home)) {
    const pid = /^initdb-(\d+)-/.exec(name)?.[1]
    if (pid !== undefined && !isProcessAlive(Number(pid)))
      rmSync(path.join(home, name), { recursive: true, force: true })
  }
}

const flags = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions", `--username=${user}`]

const build = (draft: string, { initdb, postgres }: Binaries, runner: Runner) => {
  const home = path.dirname(draft)
  return Effect.zipRight(
    perform(runner, home, [initdb, "-D", draft, ...flags]),
    perform(runner, home, [postgres, "--single", "-D", draft, "postgres"], `CREATE DATABASE ${database}\n`)
  )
}

/**
 * Creates the data directory if it is missing. Renames it into place when complete, so neither a kill nor a concurrent
 * process leaves partial data.
 */
export const ensure = Effect.fn("Cluster.ensure")(function* (options: {
  readonly home: string
  readonly binaries: Binaries
  readonly runner: Runner
  readonly major: string
  readonly name: string
}) {
  const { binaries, home, major, name, runner } = options
  const data = dataIn(home)
  if (!existsSync(data)) {
    removeAbandoned(home)
    const draft = path.join(home, `initdb-${process.pid}-${name}`)
    yield* build(draft, binaries, runner).pipe(
      Effect.zipRight(
        Effect.try(() => renameSync(draft, data)).pipe(
          Effect.catchIf(
            () => existsSync(data),
            () => Effect.void
          ),
          Effect.mapError((error) => EmbeddedUnavailable.because(String(error)))
        )
      ),
      Effect.ensuring(Effect.sync(() => rmSync(draft, { recursive: true, force: true })))
    )
  }
  const found = yield* Effect.try({
    try: () => readFileSync(path.join(data, "PG_VERSION"), "utf8").trim(),
    catch: () => EmbeddedUnavailable.because(`${data} is not a PostgreSQL data directory`)
  })
  if (found !== major) {
    return yield* EmbeddedUnavailable.because(
      `${data} has data of PostgreSQL ${found}, but this program includes PostgreSQL ${major}`
    )
  }
  return data
})

/*
 * PostgreSQL refuses to start if its lock file is empty or contains the id of a running process. After a crash, the file may be
 * empty, or another program may have that id. The command lines of running processes show whether the file is stale.
 */

const pidFile = (data: string) => path.join(data, "postmaster.pid")

const parsePid = (text: string): number | undefined => {
  // The minus sign is that of a standalone backend.
  const digits = /^-?([1-9]\d{0,9})(?:\n|$)/.exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

const readText = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : undefined)

export const interruptServer = (data: string) =>
  Effect.ignore(
    Effect.try(() => {
      const pid = parsePid(readText(pidFile(data)) ?? "") ?? 0
      if (pid > 1) process.kill(pid, "SIGINT")
    })
  )

interface Process {
  readonly pid: number
  /** The command with its arguments. Empty for a zombie process. */
  readonly command: string
}

const readProcess = (pid: string): ReadonlyArray<Process> => {
  try {
    return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") }]
  } catch {
    return []
  }
}

const parsePsLine = (line: string): ReadonlyArray<Process> => {
  const [, pid, command = ""] = /^\s*(\d+)\s?(.*)$/.exec(line) ?? []
  return pid === undefined ? [] : [{ pid: Number(pid), command }]
}

const listProcesses = Effect.fnUntraced(function* (runner: Runner) {
  if (existsSync("/proc/self/cmdline"))
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap(readProcess)
  const { code, stdout } = yield* run(runner, "/", ["ps", "-axww", "-o", "pid=,command="])
  return code === 0 ? stdout.split("\n").flatMap(parsePsLine) : undefined
})

/** Moves the file away before it compares it. If a starting server has just replaced the file, moves it back. */
const removeIfUnchanged = (file: string, text: string) => {
  const aside = `${file}.${process.pid}.stale`
  renameSync(file, aside)
  try {
    if (readText(aside) !== text) linkSync(aside, file)
  } finally {
    rmSync(aside, { force: true })
  }
}

const describe = (text: string) => {
  const pid = parsePid(text)
  if (pid !== undefined) return `it names the process ${pid}, which is not the database`
  return text.trim() === "" ? "it is empty" : "it names no process"
}

/** Removes lock files that remain after a crash or power loss. Keeps those of a running server. */
export const removeStaleLocks = Effect.fn("Cluster.removeStaleLocks")(
  function* (data: string, socket: string, runner: Runner) {
    const found = [pidFile(data), `${socket}.lock`].flatMap((file) => {
      const text = readText(file)
      return text === undefined ? [] : [{ file, text }]
    })
    if (found.length === 0) return
    const all = yield* listProcesses(runner)
    if (all === undefined) return
    const servers = all.filter(({ command }) => `${command} `.includes(` -D ${data} `))
    for (const { file, text } of found) {
      const pid = parsePid(text)
      // If no process has the id, PostgreSQL itself replaces the file.
      const isStale = pid === undefined ? servers.length === 0 : all.some((one) => one.pid === pid)
      if (!isStale || servers.some((server) => server.pid === pid)) continue
      yield* Effect.try(() => removeIfUnchanged(file, text))
      yield* Effect.logWarning(`Removed the stale lock file ${file}: ${describe(text)}`)
    }
  },
  Effect.catchAllCause((cause) => Effect.logDebug("The database's lock files could not be checked", cause))
)
