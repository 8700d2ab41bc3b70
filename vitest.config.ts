import { defineConfig } from "vitest/config"

const report = process.env["VITEST_JSON"]

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/harness/globalSetup.ts"],
    pool: "forks",
    // Most files wait for processes and clocks rather than for a core.
    poolOptions: { forks: { minForks: 1, maxForks: 4 } },
    // A shared machine can starve a process for seconds. At a developer's desk nothing is tried twice.
    retry: process.env["CI"] ? 1 : 0,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...(report ? { reporters: ["default", "json"], outputFile: { json: report } } : {})
  }
})
