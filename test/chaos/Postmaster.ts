import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import path from "node:path"
import { Context, Effect, Layer } from "effect"
import { Embedded } from "../../src/database/Embedded.ts"
import { isAlive } from "../harness/temporary.ts"

/** What a crash must not lose is written; only the disk's own write is left out. */
const settings = { fsync: "off", max_connections: "100" }

const childrenOf = (parent: number): ReadonlyArray<number> =>
  execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (ppid === parent && pid !== undefined ? [pid] : []))

const send = (pid: number, signal: NodeJS.Signals) => {
  if (isAlive(pid)) process.kill(pid, signal)
}

/** A database server of one's own, that may be ended and frozen; one that ended is brought back. */
export const make = Effect.fnUntraced(function* (dataDir: string) {
  const { database, host, user } = Context.get(yield* Layer.build(Embedded.layer({ dataDir, settings })), Embedded)
  const file = path.join(dataDir, "postgres/data/postmaster.pid")
  let frozen: ReadonlyArray<number> = []

  /** None between two lives. */
  const running = () => {
    try {
      const pid = Number.parseInt(readFileSync(file, "utf8"), 10)
      return pid > 1 ? pid : undefined
    } catch {
      return undefined
    }
  }
  const thaw = () => {
    for (const pid of frozen) send(pid, "SIGCONT")
    frozen = []
  }
  yield* Effect.addFinalizer(() => Effect.sync(thaw))

  return {
    url: `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
    socket: path.join(host, ".s.PGSQL.5432"),
    /** Ends the server: as a crash, at once with its sessions broken, or with them rolled back. */
    end: (how: "SIGKILL" | "SIGQUIT" | "SIGINT") => {
      const pid = running()
      if (pid !== undefined) send(pid, how)
    },
    /** Stops every process of the server where it stands. */
    freeze: () => {
      const pid = running()
      frozen = pid === undefined ? [] : [pid, ...childrenOf(pid)]
      for (const each of frozen) send(each, "SIGSTOP")
    },
    thaw
  }
})
