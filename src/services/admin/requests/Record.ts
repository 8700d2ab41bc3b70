import { Record, Schema } from "effect"
import type { CsvCell } from "../../../domain/Csv.ts"
import { RequestError, requestErrorFields } from "../../../domain/RequestError.ts"
import { countFields } from "../../requests/RequestColumns.ts"
import { TextOrNull, UnixSeconds, Usd } from "../../resources/Record.ts"
import type { RequestRow } from "../../telemetry/RequestLog.ts"
import type { NameMap } from "../Names.ts"

type Name = keyof typeof countFields
type Field = (typeof countFields)[Name]

const withTotal = <A>({ completion_tokens, prompt_tokens, ...others }: Record<Name, A>, total: A) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: total,
  ...others
})

/** What operators see counted, of a request and of many. */
export const Counts = withTotal(
  Record.map(countFields, () => Schema.Number),
  Schema.Number
)

export const countsOf = (row: Readonly<Record<Field, number | null>>) => {
  const counts = Record.map(countFields, (field) => row[field] ?? 0)
  return withTotal(counts, counts.prompt_tokens + counts.completion_tokens)
}

export const AttemptRecord = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String,
  status: Schema.optional(Schema.Number),
  ms: Schema.Number,
  /** The provider's words. */
  detail: Schema.optional(Schema.String),
  provider_request_id: Schema.optional(Schema.String),
  /** What a failed attempt cost all the same. */
  cost_usd: Schema.optional(Usd),
  /** What the provider says it cost. */
  stated_cost_usd: Schema.optional(Usd)
}).annotations({ identifier: "Attempt" })

export const LogRecord = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  at: UnixSeconds,
  /** What the client got; 499 when it left first. */
  status: Schema.Number,
  code: TextOrNull,
  error: RequestError,
  org: Schema.String,
  key_id: Schema.String,
  address: TextOrNull,
  user_agent: TextOrNull,
  end_user: TextOrNull,
  tag: TextOrNull,
  surface: Schema.String,
  model: TextOrNull,
  stream: Schema.Boolean,
  route: TextOrNull,
  preferred_route: TextOrNull,
  provider_request_id: TextOrNull,
  attempts: Schema.Array(AttemptRecord),
  usage: Schema.NullOr(Schema.Struct(Counts)),
  notes: Schema.Array(Schema.String),
  /** In the end: less what was refunded. */
  charge_usd: Usd,
  refunded_usd: Usd,
  cost_usd: Schema.NullOr(Usd),
  /** What providers say that it cost. */
  stated_cost_usd: Schema.NullOr(Usd),
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

const countedOf = Record.values(countFields)
const usageOf = (row: RequestRow) => (countedOf.every((field) => row[field] === null) ? null : countsOf(row))

/** Unknown where the answering route has no cost. */
export const costOf = ({ attempts, charge, cost }: RequestRow): bigint | null => {
  const failed = attempts.flatMap((attempt) => attempt.cost ?? [])
  if (cost === null && (charge > 0n || failed.length === 0)) return null
  return failed.reduce<bigint>((sum, one) => sum + one, cost ?? 0n)
}

/** What was stated, failed attempts included; null where nothing was. */
const statedCostOf = ({ attempts, statedCost }: RequestRow): bigint | null => {
  const failed = attempts.flatMap((attempt) => attempt.statedCost ?? [])
  if (statedCost === null && failed.length === 0) return null
  return failed.reduce<bigint>((sum, one) => sum + one, statedCost ?? 0n)
}

export const attemptRecord = ({
  cost,
  providerRequestId,
  statedCost,
  ...attempt
}: RequestRow["attempts"][number]): typeof AttemptRecord.Type => ({
  ...attempt,
  provider_request_id: providerRequestId,
  cost_usd: cost,
  stated_cost_usd: statedCost
})

/** The last attempt of a request that was answered is the one whose answer it got. */
const attemptRecords = ({ attempts, statedCost }: RequestRow) =>
  attempts.map((attempt, index) =>
    attemptRecord(
      statedCost === null || index < attempts.length - 1 || attempt.statedCost !== undefined
        ? attempt
        : { ...attempt, statedCost }
    )
  )

export const logRecord = (row: RequestRow, refunded: bigint): LogRecord => ({
  id: row.id,
  request_id: row.requestId,
  at: row.at,
  status: row.status,
  code: row.code,
  error: row.error,
  org: row.orgId,
  key_id: row.keyId,
  address: row.address,
  user_agent: row.userAgent,
  end_user: row.endUser,
  tag: row.tag,
  surface: row.surface,
  model: row.model,
  stream: row.stream,
  route: row.route,
  preferred_route: row.preferredRoute,
  provider_request_id: row.providerRequestId,
  attempts: attemptRecords(row),
  usage: usageOf(row),
  notes: row.notes,
  charge_usd: row.charge,
  refunded_usd: refunded,
  cost_usd: costOf(row),
  stated_cost_usd: statedCostOf(row),
  first_byte_ms: row.firstByteMs,
  total_ms: row.totalMs
})

export const namedLogRecord = (record: LogRecord, names: NameMap): NamedLogRecord => ({
  ...record,
  org_name: names.get(record.org) ?? null,
  key_name: names.get(record.key_id) ?? null
})

export const errorColumns = requestErrorFields.map((name) => `error_${name}`)

const csvColumns: Readonly<Record<string, ReadonlyArray<string>>> = {
  org: ["org", "org_name"],
  key_id: ["key_id", "key_name"],
  attempts: ["tries"],
  error: [],
  usage: Object.keys(countFields)
}

/** Columns that came later are last: others are read by their position. */
export const logColumns = [
  ...Object.keys(LogRecord.fields).flatMap((name) => csvColumns[name] ?? [name]),
  ...errorColumns
]

export const logCells = (
  { attempts, error, usage, ...record }: NamedLogRecord,
  columns: ReadonlyArray<string> = logColumns
): ReadonlyArray<CsvCell> => {
  const told = error && { error_param: error.param, error_message: error.message, error_hint: error.hint }
  const cells: Readonly<Record<string, CsvCell>> = { ...record, ...told, ...usage, tries: attempts.length }
  return columns.map((column) => cells[column])
}
