import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import path from "node:path"

export const residentMegabytes = (pid) =>
  Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) / 1024

const readStat = (pid) => {
  try {
    // The name before the last parenthesis may hold anything.
    const [, fields] = /^.*\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))
    return fields.split(" ")
  } catch {
    return undefined
  }
}

/** Of these processes so far; NaN where there are none, or the system does not tell it as Linux does. */
export const cpuMillis = (pids) => {
  const stats = pids.map(readStat).filter(Boolean)
  const ticks = stats.reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0)
  return stats.length === 0 ? Number.NaN : ticks * 10
}

/** The embedded PostgreSQL's processes, which stay for as long as their connections. */
export const databaseProcesses = (directory) => {
  const file = path.join(directory, "postgres/data/postmaster.pid")
  if (!existsSync(file) || !existsSync("/proc/self/stat")) return []
  const [postmaster] = readFileSync(file, "utf8").split("\n")
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return [postmaster, ...processes.filter((pid) => readStat(pid)?.[1] === postmaster)]
}
