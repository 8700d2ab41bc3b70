import { chatCharge } from "../../src/domain/Pricing.ts"
import { explainPrice } from "../../src/services/admin/RequestExplanation.ts"
import { agents, chatModel, flat, usd } from "../domain/PricedChats.ts"
import { assert, describe, it } from "../harness/It.ts"
import { requestRow } from "./RequestRow.ts"

describe("why a request cost what it did", () => {
  it("names every part of the price, and their sum is the price", () => {
    const { parts, price_usd } = explainPrice({
      row: requestRow,
      model: chatModel({ pricing: agents }),
      money: undefined,
      video: undefined
    })
    assert.deepStrictEqual(
      parts.map(({ amount_usd, per, quantity, unit }) => [unit, quantity, per, amount_usd]),
      [
        ["prompt tokens", 300, "1M tokens", 0.00045],
        ["cached prompt tokens", 600, "1M tokens", 0.00009],
        ["cache write tokens", 60, "1M tokens", 0.0001125],
        ["one-hour cache write tokens", 40, "1M tokens", 0.00012],
        ["completion tokens", 10, "1M tokens", 0.000075],
        ["web searches", 3, "1000 searches", 0.03]
      ]
    )
    assert.strictEqual(price_usd, 30_847_500n)
  })

  it("takes the rates that the request was charged by, not those of today", () => {
    const row = Object.assign(structuredClone(requestRow), { webSearches: 0 })
    const money = {
      hold: {
        id: "h",
        state: "settled",
        amount: usd(1_000_000),
        charged: chatCharge(flat, { prompt: 1000, completion: 10, cached: 600, cacheWrite: 100, reasoning: 0 }),
        createdAt: new Date(0),
        closedAt: new Date(1)
      },
      entries: []
    } as const
    const recorded = { row, model: chatModel({ pricing: agents }), money, video: undefined }
    const kept = explainPrice({ ...recorded, rates: flat })
    assert.strictEqual(kept.price_usd, money.hold.charged)
    assert.strictEqual(kept.why, "Quantity times rate is the charge.")
    assert.include(explainPrice(recorded).why, "Prices have changed since.")
    assert.include(explainPrice({ ...recorded, rates: agents }).why, "Quantity times rate is")
    assert.include(explainPrice({ ...recorded, model: undefined, rates: flat }).why, "rate is the charge")
  })
})
