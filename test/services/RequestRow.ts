import { randomUUID } from "node:crypto"
import { KeyId } from "../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { RequestRow } from "../../src/services/telemetry/RequestLog.ts"

/** A chat of the request log. */
export const requestRow = RequestRow.make({
  id: randomUUID(),
  requestId: "r",
  at: new Date(0),
  status: 200,
  code: null,
  error: null,
  surface: "chat",
  orgId: OrgId.make("org_1"),
  keyId: KeyId.make("key_1"),
  address: null,
  userAgent: null,
  endUser: null,
  tag: null,
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
  images: null,
  seconds: null,
  holdId: randomUUID(),
  charge: NanoUsd(0n),
  cost: null,
  statedCost: null,
  priceId: null,
  firstByteMs: 100,
  totalMs: 200
})
