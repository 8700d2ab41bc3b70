import { explainPrice } from "../../src/services/admin/requests/Price.ts"
import { agents, chatModel } from "../domain/PricedChats.ts"
import { assert, describe, it } from "../harness/It.ts"
import { requestRow as row } from "./RequestRow.ts"

describe("why a request cost what it did", () => {
  it("names every part of the price, and their sum is the price", () => {
    const { parts, price_usd } = explainPrice({
      row,
      model: chatModel({ pricing: agents }),
      money: undefined,
      video: undefined
    })
    assert.deepStrictEqual(
      parts.map(({ amount_usd, per, quantity, unit }) => [unit, quantity, per, amount_usd]),
      [
        ["prompt tokens", 300, "1M tokens", 0.00045],
        ["cached prompt tokens", 600, "1M tokens", 0.00009],
        ["cache-write tokens", 60, "1M tokens", 0.0001125],
        ["one-hour cache-write tokens", 40, "1M tokens", 0.00012],
        ["completion tokens", 10, "1M tokens", 0.000075],
        ["web searches", 3, "1000 searches", 0.03]
      ]
    )
    assert.strictEqual(price_usd, 30_847_500n)
  })
})
