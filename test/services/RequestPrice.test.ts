import { randomUUID } from "node:crypto"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { explainPrice } from "../../src/services/admin/requests/Price.ts"
import { RequestRow } from "../../src/services/telemetry/RequestLog.ts"
import { agents, chatModel } from "../domain/PricedChats.ts"
import { assert, describe, it } from "../harness/It.ts"

const row = RequestRow.make({
  id: randomUUID(),
  requestId: "r",
  at: new Date(0),
  status: 200,
  code: null,
  surface: "chat",
  orgId: OrgId.make("org_1"),
  keyId: KeyId.make("key_1"),
  address: null,
  userAgent: null,
  model: "m",
  route: "m@p",
  preferredRoute: null,
  stream: false,
  attempts: [],
  providerRequestId: null,
  notes: [],
  promptTokens: 1000,
  completionTokens: 10,
  cachedTokens: 600,
  cacheWriteTokens: 100,
  cacheWriteHourTokens: 40,
  reasoningTokens: 0,
  webSearches: 3,
  holdId: randomUUID(),
  charge: NanoUsd(0n),
  cost: null,
  firstByteMs: 1,
  totalMs: 2
})

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
