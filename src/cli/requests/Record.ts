import type { RequestRow } from "../../services/telemetry/RequestLog.ts"
import type * as Output from "../Output.ts"

const usageOf = ({ completionTokens, promptTokens, ...row }: RequestRow) =>
  promptTokens === null && completionTokens === null
    ? null
    : {
        prompt_tokens: promptTokens ?? 0,
        completion_tokens: completionTokens ?? 0,
        total_tokens: (promptTokens ?? 0) + (completionTokens ?? 0),
        cached_tokens: row.cachedTokens ?? 0,
        cache_write_tokens: row.cacheWriteTokens ?? 0,
        cache_write_1h_tokens: row.cacheWriteHourTokens ?? 0,
        reasoning_tokens: row.reasoningTokens ?? 0,
        web_searches: row.webSearches ?? 0
      }

/** Unknown where the answering route has no cost. */
export const costOf = ({ attempts, charge, cost }: RequestRow): bigint | null => {
  const failed = attempts.flatMap((attempt) => attempt.cost ?? [])
  if (cost === null && (charge > 0n || failed.length === 0)) return null
  return failed.reduce<bigint>((sum, one) => sum + one, cost ?? 0n)
}

export const attemptRecord = ({ cost, providerRequestId, ...attempt }: RequestRow["attempts"][number]) => ({
  ...attempt,
  provider_request_id: providerRequestId,
  cost_usd: cost
})

export const recordOf = (row: RequestRow): Output.Fields => ({
  id: row.id,
  request_id: row.requestId,
  at: row.at,
  status: row.status,
  code: row.code,
  org: row.orgId,
  key_id: row.keyId,
  address: row.address,
  user_agent: row.userAgent,
  surface: row.surface,
  model: row.model,
  stream: row.stream,
  route: row.route,
  preferred_route: row.preferredRoute,
  provider_request_id: row.providerRequestId,
  attempts: row.attempts.map(attemptRecord),
  usage: usageOf(row),
  notes: row.notes,
  charge_usd: row.charge,
  cost_usd: costOf(row),
  first_byte_ms: row.firstByteMs,
  total_ms: row.totalMs
})
