import { existsSync, readFileSync, rmSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import type { Binaries } from "./Binaries.ts"
import { type Runner, run } from "./Runner.ts"

const pidFile = (data: string) => path.join(data, "postmaster.pid")

const recordedPid = (data: string) => {
  if (!existsSync(pidFile(data))) return undefined
  const pid = Number.parseInt(readFileSync(pidFile(data), "utf8"), 10)
  return pid > 1 ? pid : undefined
}

/** Asks a server that lost its supervisor to shut down, ending its sessions. */
export const interrupt = (data: string) =>
  Effect.ignore(
    Effect.try(() => {
      const pid = recordedPid(data)
      if (pid !== undefined) process.kill(pid, "SIGINT")
    })
  )

const commandOf = (pid: number, runner: Runner) =>
  existsSync("/proc/self/cmdline")
    ? Effect.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"))
    : Effect.map(run(runner, "/", ["ps", "-o", "command=", "-p", String(pid)]), ({ stdout }) => stdout)

/**
 * After a power loss the recorded pid may belong to some other process by now, for whose sake PostgreSQL would
 * refuse to start for ever.
 */
export const forgetStranger = Effect.fn("Postmaster.forgetStranger")(
  function* (data: string, binaries: Binaries, runner: Runner) {
    const pid = recordedPid(data)
    if (pid === undefined) return
    const command = yield* commandOf(pid, runner)
    const isStranger = command !== "" && !command.startsWith(binaries.postgres)
    if (isStranger && recordedPid(data) === pid) rmSync(pidFile(data), { force: true })
  },
  Effect.catchAll(() => Effect.void)
)
