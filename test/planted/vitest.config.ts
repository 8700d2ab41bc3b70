import { defineConfig } from "vitest/config"

const { PLANTED_TEMPLATE: databaseTemplate = "", TEST_DATABASE_URL: databaseServer = "" } = process.env

/** Runs test files with a bug, on the database server of the tests that start it. */
export default defineConfig({
  // Vitest keeps the durations of test files there, and those with a bug are no measure.
  cacheDir: "node_modules/.vite/planted",
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/planted/plant.ts"],
    provide: { databaseServer, databaseTemplate },
    pool: "forks",
    poolOptions: { forks: { minForks: 1, maxForks: 2 } },
    // A bug may keep a test waiting for ever.
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
