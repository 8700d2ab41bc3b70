import { Schema } from "effect"
import type { CsvCell } from "../../../domain/Csv.ts"
import { TextOrNull, UnixSeconds, Usd } from "../../resources/Record.ts"
import type { RequestRow } from "../../telemetry/RequestLog.ts"
import type { NameMap } from "../Names.ts"

export const AttemptRecord = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String,
  status: Schema.optional(Schema.Number),
  ms: Schema.Number,
  /** The provider's words. */
  detail: Schema.optional(Schema.String),
  provider_request_id: Schema.optional(Schema.String),
  /** Of one that failed and is paid for all the same. */
  cost_usd: Schema.optional(Usd)
}).annotations({ identifier: "Attempt" })

const Tokens = Schema.Struct({
  prompt_tokens: Schema.Number,
  completion_tokens: Schema.Number,
  total_tokens: Schema.Number,
  cached_tokens: Schema.Number,
  cache_write_tokens: Schema.Number,
  cache_write_1h_tokens: Schema.Number,
  reasoning_tokens: Schema.Number,
  web_searches: Schema.Number
})

export const LogRecord = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  at: UnixSeconds,
  /** What the client got; 499 when it left first. */
  status: Schema.Number,
  code: TextOrNull,
  org: Schema.String,
  key_id: Schema.String,
  address: TextOrNull,
  user_agent: TextOrNull,
  surface: Schema.String,
  model: TextOrNull,
  stream: Schema.Boolean,
  route: TextOrNull,
  preferred_route: TextOrNull,
  provider_request_id: TextOrNull,
  attempts: Schema.Array(AttemptRecord),
  usage: Schema.NullOr(Tokens),
  notes: Schema.Array(Schema.String),
  charge_usd: Usd,
  cost_usd: Schema.NullOr(Usd),
  first_byte_ms: Schema.NullOr(Schema.Number),
  total_ms: Schema.Number
})
export type LogRecord = typeof LogRecord.Type

/** Beside the ids what they are called; null where it is not known. */
export const NamedLogRecord = Schema.Struct({
  ...LogRecord.fields,
  org_name: TextOrNull,
  key_name: TextOrNull
}).annotations({
  identifier: "Request"
})
export type NamedLogRecord = typeof NamedLogRecord.Type

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

export const attemptRecord = ({
  cost,
  providerRequestId,
  ...attempt
}: RequestRow["attempts"][number]): typeof AttemptRecord.Type => ({
  ...attempt,
  provider_request_id: providerRequestId,
  cost_usd: cost
})

export const logRecord = (row: RequestRow): LogRecord => ({
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

export const namedLogRecord = (row: RequestRow, names: NameMap): NamedLogRecord => ({
  ...logRecord(row),
  org_name: names.get(row.orgId) ?? null,
  key_name: names.get(row.keyId) ?? null
})

export const logColumns = [
  "id",
  "request_id",
  "at",
  "status",
  "code",
  "org",
  "org_name",
  "key_id",
  "key_name",
  "address",
  "user_agent",
  "surface",
  "model",
  "stream",
  "route",
  "preferred_route",
  "provider_request_id",
  "tries",
  "prompt_tokens",
  "completion_tokens",
  "cached_tokens",
  "cache_write_tokens",
  "cache_write_1h_tokens",
  "reasoning_tokens",
  "web_searches",
  "notes",
  "charge_usd",
  "cost_usd",
  "first_byte_ms",
  "total_ms"
] as const

export const logCells = ({ attempts, usage, ...record }: NamedLogRecord): ReadonlyArray<CsvCell> => {
  const cells = { ...record, ...usage, tries: attempts.length }
  return logColumns.map((column) => cells[column])
}
