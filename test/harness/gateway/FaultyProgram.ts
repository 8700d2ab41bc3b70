import { writeFileSync } from "node:fs"
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { serve } from "../../../src/Serve.ts"
import { readSettings } from "../../../src/Settings.ts"
import { Failpoint, type FailpointName } from "../../../src/services/runtime/Failpoint.ts"
import { productionTimings, Timings } from "../../../src/services/runtime/Timings.ts"
import { readEnvironment } from "../../../src/settings/Environment.ts"
import { decode } from "./ShortTimings.ts"

/**
 * The gateway with faults that its environment variables select:
 * - With `FAILPOINT`, it is killed at this failpoint, the first time or at the occurrence `FAILPOINT_TURN`, after it has
 *   written the name to the file `FAILPOINT_MARKER`.
 * - With `PLANTED_ERROR`, every chat throws after its hold, and so does a callback at SIGUSR2.
 * - At each SIGUSR2, its wall clock moves by `CLOCK_STEP_MS`.
 * - Its background work has the timings in `TEST_TIMINGS`.
 */
const {
  CLOCK_STEP_MS,
  FAILPOINT,
  FAILPOINT_MARKER = "",
  FAILPOINT_TURN = "1",
  PLANTED_ERROR,
  TEST_TIMINGS
} = process.env

const throwPlanted = () => {
  throw new TypeError("planted")
}

const die = (name: string) => {
  writeFileSync(FAILPOINT_MARKER, name)
  process.kill(process.pid, "SIGKILL")
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

let reached = 0

const faults = {
  reach: (name: FailpointName) =>
    Effect.sync(() => {
      if (PLANTED_ERROR !== undefined) throwPlanted()
      if (name === FAILPOINT && ++reached >= Number(FAILPOINT_TURN)) die(name)
    })
}

if (PLANTED_ERROR !== undefined) process.on("SIGUSR2", throwPlanted)

if (CLOCK_STEP_MS !== undefined) {
  const wallClock = Date.now
  let offset = 0
  Date.now = () => wallClock() + offset
  process.on("SIGUSR2", () => {
    offset += Number(CLOCK_STEP_MS)
    process.stderr.write(`clock set by ${offset} ms\n`)
  })
}

NodeRuntime.runMain(
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    return yield* serve(yield* readSettings(environment))
  }).pipe(
    Effect.provideService(Failpoint, faults),
    Effect.provideService(Timings, TEST_TIMINGS === undefined ? productionTimings : decode(TEST_TIMINGS))
  ),
  { disablePrettyLogger: true }
)
