import { defineConfig } from "vitest/config"
import { LongestFirst } from "./test/harness/LongestFirst.ts"

const report = process.env["VITEST_JSON"]

/** As the build imports them. */
const texts = {
  name: "texts",
  transform: (text: string, file: string) =>
    file.endsWith(".md") ? `export default ${JSON.stringify(text)}` : undefined
}

/** Every test file of these folders runs without a database, a gateway or a process. */
const pure = [
  "test/{books,docs,domain,fetching,providers,storage}/**/*.test.ts",
  "test/services/{catalog,chat,images,media,reconcile,routing,runtime,sql,tracing}/**/*.test.ts"
]

const smoke = ["test/smoke/**/*.test.ts"]

/** They start processes, browsers or servers, or wait for minutes. */
const slow = [
  "test/{bench,chaos,crashes,fuzz,planted}/**/*.test.ts",
  "test/clients/agents/**/*.test.ts",
  "test/**/*.slow.test.ts"
]

/** `npm test` runs them in a short form, the slow tier with every case. */
const long = ["test/**/*.long.test.ts"]

const usual = {
  globalSetup: ["test/harness/globalSetup.ts"],
  // A net for what never ends: a test of processes takes minutes on a machine that others use.
  testTimeout: 240_000,
  hookTimeout: 240_000,
  // A shared machine can starve a process for seconds. At a developer's desk nothing is tried twice.
  retry: process.env["CI"] ? 1 : 0,
  pool: "forks",
  // Loading the tree costs more than most files' tests.
  isolate: false
} as const

export default defineConfig({
  plugins: [texts],
  test: {
    projects: [
      { extends: true, test: { ...usual, name: "pure", globalSetup: [], include: pure, exclude: slow } },
      {
        extends: true,
        test: { ...usual, name: "gateway", include: ["test/**/*.test.ts"], exclude: [...pure, ...smoke, ...slow] }
      },
      { extends: true, test: { ...usual, name: "smoke", include: smoke } },
      { extends: true, test: { ...usual, name: "slow", include: slow } },
      { extends: true, test: { ...usual, name: "long", include: long, env: { TEST_CASES: "all" } } }
    ],
    sequence: { sequencer: LongestFirst },
    poolOptions: { forks: { minForks: 3, maxForks: 3 } },
    ...(report ? { reporters: ["default", "json"], outputFile: { json: report } } : {})
  }
})
