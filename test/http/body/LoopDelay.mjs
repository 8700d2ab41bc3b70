// Loaded into the gateway's process: says on SIGUSR2 how many milliseconds its main thread worked at most between two
// turns of the event loop since the last time. Its own work, and not the clock: other processes may have the CPU.
import { readFileSync } from "node:fs"

const worked = () => {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6
  } catch {
    return performance.now()
  }
}

let last = worked()
let longest = 0
setInterval(() => {
  const now = worked()
  longest = Math.max(longest, now - last)
  last = now
}, 2).unref()

process.on("SIGUSR2", () => {
  process.stderr.write(`loop-delay ${Math.round(longest)}\n`)
  longest = 0
})
