import { spawnSync } from "node:child_process"
import { tmpdir } from "node:os"
import { parseArgs } from "node:util"

/** Each campaign's measure and how long it is without one. */
const measures = { chaos: ["minutes", "10"], fuzz: ["count", "20000"], growth: ["rows", "10000000"] }
const files = {
  chaos: "test/chaos/Chaos.test.ts",
  fuzz: "test/fuzz/Fuzz.test.ts",
  growth: "test/bench/Growth.test.ts"
}
/** What each takes beside its measure. */
const more = { chaos: ["seed"], fuzz: ["seed"], growth: ["videos", "url"] }

const [name, ...args] = process.argv.slice(2)
const [measure, usual] = measures[name]
const options = Object.fromEntries([measure, ...more[name]].map((option) => [option, { type: "string" }]))
const { values } = parseArgs({ args, options })
const amount = values[measure] ?? usual
if (!(Number(amount) > 0)) throw new Error(`--${measure} takes a number above 0`)

const prefix = name.toUpperCase()
const { status } = spawnSync("npx", ["vitest", "run", "--retry=0", files[name]], {
  stdio: "inherit",
  env: {
    ...process.env,
    [`${prefix}_${measure.toUpperCase()}`]: amount,
    ...(name === "growth" && { TEST_DIRECTORY: process.env.TEST_DIRECTORY || tmpdir() }),
    [`${prefix}_SEED`]: values.seed ?? String(Date.now()),
    ...(values.videos && { [`${prefix}_VIDEOS`]: values.videos }),
    ...(values.url && { [`${prefix}_URL`]: values.url })
  }
})
process.exitCode = status ?? 1
