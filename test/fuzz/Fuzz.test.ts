import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe, it } from "../harness/It.ts"
import * as Fuzz from "./Fuzz.ts"

const { FUZZ_CASE, FUZZ_COUNT = "600", FUZZ_SEED = "short" } = process.env
const count = Number(FUZZ_COUNT)
const again = (index: number | undefined) =>
  `FUZZ_SEED=${FUZZ_SEED} FUZZ_COUNT=${FUZZ_COUNT}${index === undefined ? "" : ` FUZZ_CASE=${index}`} npx vitest run test/fuzz/Fuzz.test.ts`

describe("fuzz", () => {
  it("the same seed and number make the same request", () => {
    const some = (seed: string) => [1, 2, 3, 4, 5].map((index) => Fuzz.caseOf(seed, index))
    assert.deepStrictEqual(some("a"), some("a"))
    assert.notDeepEqual(some("a"), some("b"))
  })

  deploymentTest(
    "a gateway answers everything in its envelope, and its other customers as before",
    function* () {
      const only = FUZZ_CASE === undefined ? undefined : Number(FUZZ_CASE)
      const report = yield* Fuzz.run({ seed: FUZZ_SEED, count, only })
      process.stdout.write(`fuzz, seed ${FUZZ_SEED}: ${Fuzz.describe(report, again)}\n`)
      assert.deepStrictEqual(
        report.findings.map(({ fault, index }) => `case ${index}: ${fault}`),
        []
      )
    },
    120_000 + count * 100
  )
})
