import { statedCostIn } from "../../../src/providers/client/RouteOptions.ts"
import { assert, describe, it } from "../../harness/It.ts"

type Stated = bigint | null | undefined

const usd = (usage: string): Stated => statedCostIn(JSON.parse(`{"usage":${usage}}`), "usage.cost")
const ticks = (usage: string): Stated => statedCostIn(JSON.parse(`{"usage":${usage}}`), "usage.cost_in_usd_ticks")

describe("a stated cost", () => {
  it("is exact to the nano-dollar, and rounded to it beyond", () => {
    for (const [text, nano] of [
      ["0", 0n],
      ["0.00014865", 148_650n],
      ["0.1", 100_000_000n],
      ["19", 19_000_000_000n],
      ["1e-9", 1n],
      ["4.9e-10", 0n],
      ["5e-10", 1n],
      ["5e-324", 0n],
      ["1234.000000001", 1_234_000_000_001n],
      ["1e6", 1_000_000_000_000_000n]
    ] as const) {
      assert.strictEqual(usd(`{"cost":${text}}`), nano, text)
    }
  })

  it("is in ticks of which 1e10 are a dollar where its name says so", () => {
    assert.strictEqual(ticks(`{"cost_in_usd_ticks":37756000}`), 3_775_600n)
    assert.strictEqual(ticks(`{"cost_in_usd_ticks":5}`), 1n)
    assert.strictEqual(ticks(`{"cost_in_usd_ticks":4}`), 0n)
    assert.isNull(ticks(`{"cost_in_usd_ticks":"37756000"}`))
    assert.isNull(ticks(`{"cost_in_usd_ticks":1e300}`))
  })

  it("has the vendor's bill on top for calls with one's own key alone", () => {
    const details = `"cost_details":{"upstream_inference_cost":0.25}`
    assert.strictEqual(usd(`{"cost":0.01,"is_byok":true,${details}}`), 260_000_000n)
    assert.strictEqual(usd(`{"cost":0.25,"is_byok":false,${details}}`), 250_000_000n)
    assert.strictEqual(usd(`{"cost":0.25,"is_byok":"true",${details}}`), 250_000_000n)
    assert.strictEqual(
      usd(`{"cost":0.25,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}`),
      250_000_000n
    )
    assert.isNull(usd(`{"cost":0.01,"is_byok":true,"cost_details":{"upstream_inference_cost":-1}}`))
  })

  it("is none where nothing is stated, and dropped where it is absurd", () => {
    for (const usage of ["{}", `{"cost":null}`, "null", "7"]) assert.isUndefined(usd(usage), usage)
    for (const cost of ["-0.01", `"0.01"`, "1e300", "1e999", "1000001", "true", "{}", "[1]"]) {
      assert.isNull(usd(`{"cost":${cost}}`), cost)
    }
    assert.isNull(statedCostIn({ usage: { cost: Number.NaN } }, "usage.cost"))
    assert.isUndefined(statedCostIn({ usage: { cost: 1 } }, "none"))
  })
})
