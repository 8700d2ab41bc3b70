import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

export const residentMegabytes = (pid) =>
  Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1024

/** Of these processes so far; undefined where the system does not tell it as Linux does. */
export const cpuMillis = (pids) => {
  try {
    const ticks = pids.map((pid) => {
      const [, user, system] = /^.*\) (?:\S+ ){11}(\d+) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))
      return Number(user) + Number(system)
    })
    return ticks.reduce((sum, one) => sum + one, 0) * 10
  } catch {
    return undefined
  }
}

/** The embedded PostgreSQL's processes, which stay for as long as their connections. */
export const databaseProcesses = (directory) => {
  try {
    const [postmaster] = readFileSync(path.join(directory, "postgres/data/postmaster.pid"), "utf8").split("\n")
    const isChild = (pid) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1] === postmaster
    return [postmaster, ...readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && isChild(pid))]
  } catch {
    return []
  }
}
