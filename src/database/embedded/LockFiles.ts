import { existsSync, linkSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { type Runner, run } from "./Runner.ts"

/*
 * PostgreSQL refuses to start if a lock file exists that is empty or names a running process. After a crash the file may be
 * empty, or its number may belong to another program. The command lines of processes show which it is.
 */

const pidFile = (data: string) => path.join(data, "postmaster.pid")

const parsePid = (text: string): number | undefined => {
  // A standalone backend writes its process id with a minus.
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
  /** With its arguments; empty for a zombie. */
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

/** Moves the file first: if a starting server has just replaced it, the server's file is put back. */
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

/** Removes lock files that a crash or a power loss left. Keeps those of a running server. */
export const removeStale = Effect.fn("LockFiles.removeStale")(
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
      // PostgreSQL itself replaces the file of a process that does not exist.
      const isStale = pid === undefined ? servers.length === 0 : all.some((one) => one.pid === pid)
      if (!isStale || servers.some((server) => server.pid === pid)) continue
      yield* Effect.try(() => removeIfUnchanged(file, text))
      yield* Effect.logWarning(`Removed ${file}, which a crash left behind: ${describe(text)}`)
    }
  },
  Effect.catchAllCause((cause) => Effect.logDebug("The database's lock files could not be checked", cause))
)
