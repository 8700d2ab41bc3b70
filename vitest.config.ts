import { defineConfig } from "vitest/config"

const report = process.env["VITEST_JSON"]

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/globalSetup.ts"],
    pool: "forks",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    ...(report ? { reporters: ["default", "json"], outputFile: { json: report } } : {})
  }
})
