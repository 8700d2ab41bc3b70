import { defineConfig } from "vitest/config"
import { LongestFirst } from "./test/harness/LongestFirst.ts"

const report = process.env["VITEST_JSON"]

/** As the build imports them. */
const texts = {
  name: "texts",
  transform: (text: string, file: string) =>
    file.endsWith(".md") ? `export default ${JSON.stringify(text)}` : undefined
}

/** They need nothing. In these folders the name of a test that needs a database ends in `.gateway.test.ts`. */
const pure = [
  "test/{docs,domain,fetching,invoices,providers,storage}/**/!(*.gateway|*.slow).test.ts",
  "test/services/{catalog,chat,images,media,reconcile,routing,runtime,sql,tracing}/**/!(*.gateway|*.slow).test.ts"
]

/** They start the built program and a browser: a look at each. */
const smoke = ["test/smoke/**/*.test.ts"]

/** They start processes, browsers or servers, or wait for minutes. */
const slow = [
  "test/{bench,chaos,crashes,fuzz,planted}/**/*.test.ts",
  "test/clients/agents/**/*.test.ts",
  "test/**/*.slow.test.ts"
]

/** `npm test` runs them in a short form, the slow tier with every case. */
const long = ["test/**/*.long.test.ts"]

const database = ["test/harness/globalSetup.ts"]

export default defineConfig({
  plugins: [texts],
  test: {
    projects: [
      { extends: true, test: { name: "pure", include: pure } },
      // A database of PostgreSQL, or a gateway in the process of the tests.
      {
        extends: true,
        test: {
          name: "gateway",
          globalSetup: database,
          include: ["test/**/*.test.ts"],
          exclude: [...pure, ...smoke, ...slow]
        }
      },
      { extends: true, test: { name: "smoke", globalSetup: database, include: smoke } },
      { extends: true, test: { name: "slow", globalSetup: database, include: slow } },
      {
        extends: true,
        test: {
          name: "long",
          globalSetup: database,
          include: long,
          env: { TEST_CASES: process.env["TEST_CASES"] ?? "all" }
        }
      }
    ],
    pool: "forks",
    // Loading the tree costs more than most files' tests.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    poolOptions: { forks: { minForks: 2, maxForks: 2 } },
    // A shared machine can starve a process for seconds. At a developer's desk nothing is tried twice.
    retry: process.env["CI"] ? 1 : 0,
    // A net for what never ends: a test of processes takes minutes on a machine that others use.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    ...(report ? { reporters: ["default", "json"], outputFile: { json: report } } : {})
  }
})
