import { defineConfig } from "vitest/config"
import { LongestFirst } from "./test/harness/LongestFirst.ts"

const report = process.env["VITEST_JSON"]

/** As the build imports them. */
const texts = {
  name: "texts",
  transform: (text: string, file: string) =>
    file.endsWith(".md") ? `export default ${JSON.stringify(text)}` : undefined
}

export default defineConfig({
  plugins: [texts],
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    pool: "forks",
    // Loading the tree costs more than most files' tests. Four, since most files wait for processes and clocks
    // rather than for a core; never fewer, since tinypool ends idle workers twice.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    poolOptions: { forks: { minForks: 4, maxForks: 4 } },
    // A shared machine can starve a process for seconds. At a developer's desk nothing is tried twice.
    retry: process.env["CI"] ? 1 : 0,
    // A net for what never ends: a test of processes takes minutes on a machine that others use.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    ...(report ? { reporters: ["default", "json"], outputFile: { json: report } } : {})
  }
})
