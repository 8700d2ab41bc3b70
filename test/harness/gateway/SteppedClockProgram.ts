import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { serve } from "../../../src/Serve.ts"
import { readEnvironment, readSettings } from "../../../src/Settings.ts"

const stepMillis = Number(process.env["CLOCK_STEP_MS"])
const wallClock = Date.now
let offset = 0
Date.now = () => wallClock() + offset

/** The gateway, except that its wall clock is set forward, or back, by each SIGUSR2. */
process.on("SIGUSR2", () => {
  offset += stepMillis
  process.stderr.write(`clock set by ${offset} ms\n`)
})

NodeRuntime.runMain(
  Effect.gen(function* () {
    const environment = yield* readEnvironment()
    return yield* serve(yield* readSettings(environment), environment)
  }),
  { disablePrettyLogger: true }
)
