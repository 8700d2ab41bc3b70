import { SqlClient } from "@effect/sql"
import { Effect, Option, Record, Schema, Stream } from "effect"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import { zero } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { countFields, RequestError, requestErrorFields } from "../requests/RequestColumns.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import type { RequestQuery } from "../telemetry/RequestListing.ts"
import { RequestLog, type RequestRow } from "../telemetry/RequestLog.ts"
import { VideoView } from "../videos/VideoState.ts"
import { type NameMap, Names } from "./Names.ts"

type CountName = keyof typeof countFields
type CountField = (typeof countFields)[CountName]

const withTotal = <A>({ completion_tokens, prompt_tokens, ...others }: Record<CountName, A>, total: A) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: total,
  ...others
})

/** Token and other counts of one request, or their sums over many. */
export const Counts = withTotal(
  Record.map(countFields, () => Schema.Number),
  Schema.Number
)

export const countsOf = (row: Readonly<Record<CountField, number | null>>) => {
  const counts = Record.map(countFields, (field) => row[field] ?? 0)
  return withTotal(counts, counts.prompt_tokens + counts.completion_tokens)
}

export const AttemptRecord = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String,
  status: Schema.optional(Schema.Number),
  ms: Schema.Number,
  /** The error message of the provider. */
  detail: Schema.optional(Schema.String),
  provider_request_id: Schema.optional(Schema.String),
  /** The cost of a failed attempt, if the provider bills it. */
  cost_usd: Schema.optional(Usd),
  /** The provider-reported cost. */
  stated_cost_usd: Schema.optional(Usd)
}).annotations({ identifier: "Attempt" })

const VideoStatus = VideoView.fields.status
type VideoStatus = typeof VideoStatus.Type

export const LogRecord = Schema.Struct({
  id: Schema.String,
  request_id: Schema.String,
  at: UnixSeconds,
  /** The HTTP status of the response, or 499 if the client disconnected before it. */
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
  /** The charge minus refunds. */
  charge_usd: Usd,
  refunded_usd: Usd,
  cost_usd: Schema.NullOr(Usd),
  /** The provider-reported cost, including failed attempts. */
  stated_cost_usd: Schema.NullOr(Usd),
  first_byte_ms: Schema.NullOr(Schema.Number),
  total_ms: Schema.Number,
  video_status: Schema.NullOr(VideoStatus).annotations({
    description: "The status of the video that the request created. Null for other requests, and for removed videos."
  })
})
export type LogRecord = typeof LogRecord.Type

/** Adds the names of the organization and the key. A name is null if it is unknown. */
export const NamedLogRecord = Schema.Struct({
  ...LogRecord.fields,
  org_name: TextOrNull,
  key_name: TextOrNull
}).annotations({
  identifier: "Request"
})
export type NamedLogRecord = typeof NamedLogRecord.Type

const countColumns = Record.values(countFields)
const usageOf = (row: RequestRow) => (countColumns.every((field) => row[field] === null) ? null : countsOf(row))

/** Includes failed attempts. Returns null, which means unknown, if the route that answered has no cost in the catalog. */
export const costOf = ({ attempts, charge, cost }: RequestRow): bigint | null => {
  const failed = attempts.flatMap((attempt) => attempt.cost ?? [])
  if (cost === null && (charge > 0n || failed.length === 0)) return null
  return failed.reduce<bigint>((sum, amount) => sum + amount, cost ?? 0n)
}

/** Returns the provider-reported cost, including failed attempts. Null if no attempt has one. */
const statedCostOf = ({ attempts, statedCost }: RequestRow): bigint | null => {
  const failed = attempts.flatMap((attempt) => attempt.statedCost ?? [])
  if (statedCost === null && failed.length === 0) return null
  return failed.reduce<bigint>((sum, amount) => sum + amount, statedCost ?? 0n)
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

/** Gives the request's stated cost to its last attempt, which is the one that answered. */
const attemptRecords = ({ attempts, statedCost }: RequestRow) =>
  attempts.map((attempt, index) =>
    attemptRecord(
      statedCost === null || index < attempts.length - 1 || attempt.statedCost !== undefined
        ? attempt
        : { ...attempt, statedCost }
    )
  )

export const logRecord = (row: RequestRow, refunded: bigint, videoStatus: VideoStatus | null): LogRecord => ({
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
  total_ms: row.totalMs,
  video_status: videoStatus
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
  video_status: [],
  usage: Object.keys(countFields)
}

/** Add new columns at the end, because scripts may read columns by position. */
export const logColumns = [
  ...Object.keys(LogRecord.fields).flatMap((name) => csvColumns[name] ?? [name]),
  ...errorColumns,
  "video_status"
]

const logCells = (
  { attempts, error, usage, ...record }: NamedLogRecord,
  columns: ReadonlyArray<string> = logColumns
): ReadonlyArray<CsvCell> => {
  const errorCells = error && { error_param: error.param, error_message: error.message, error_hint: error.hint }
  const cells: Readonly<Record<string, CsvCell>> = { ...record, ...errorCells, ...usage, tries: attempts.length }
  return columns.map((column) => cells[column])
}

const pageSize = 250

export type RequestFilter = Omit<RequestQuery, "limit" | "after" | "endedSince">

interface PageCursor {
  /** The number of rows that remain to be read. */
  readonly remaining: number
  readonly after?: string | undefined
}

/** Streams pages of rows, newest first. Holds only one page in memory. */
export const pagesOf = (scope: OrganizationScope, filter: RequestFilter, limit = Infinity) =>
  Stream.paginateEffect<PageCursor, ReadonlyArray<RequestRow>, never, RequestLog>(
    { remaining: limit },
    ({ after, remaining }) =>
      Effect.gen(function* () {
        const { page } = yield* RequestLog
        const size = Math.min(remaining, pageSize)
        const { next, rows } = yield* page(scope, { ...filter, after, limit: size })
        const rest = remaining - rows.length
        return [rows, next === undefined || rest === 0 ? Option.none() : Option.some({ remaining: rest, after: next })]
      })
  ).pipe(Stream.filter((rows) => rows.length > 0))

const VideoStatusRow = Schema.Struct({ hold: Schema.String, status: VideoStatus })

const readVideoStatuses = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
  const sql = yield* SqlClient.SqlClient
  const holds = rows.flatMap(({ holdId, surface }) => (surface === "video" ? (holdId ?? []) : []))
  if (holds.length === 0) return new Map<string, VideoStatus>()
  const statuses = yield* rowsOf(VideoStatusRow)(
    sql`SELECT hold_id AS hold, status FROM videos WHERE hold_id = ANY (${holds}::uuid[])`
  )
  return new Map(statuses.map(({ hold, status }) => [hold, status]))
})

/** Converts rows to records, with the refunds from the ledger and the status of videos. */
export const logRecords = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
  const { refundedAmounts } = yield* LedgerAdmin
  const refunded = yield* refundedAmounts(rows.flatMap(({ holdId }) => holdId ?? []))
  const videoStatuses = yield* readVideoStatuses(rows)
  return rows.map((row) => {
    const hold = row.holdId ?? ""
    return logRecord(row, refunded.get(hold) ?? zero, videoStatuses.get(hold) ?? null)
  })
})

export const nameRows = Effect.fnUntraced(function* (scope: OrganizationScope, rows: ReadonlyArray<RequestRow>) {
  const names = yield* Effect.flatMap(Names, ({ of }) => of(scope, rows))
  return (yield* logRecords(rows)).map((record) => namedLogRecord(record, names))
})

/** Streams a header line and a line for each row, without line breaks. */
export const csvLines = (
  scope: OrganizationScope,
  filter: RequestFilter,
  {
    columns = logColumns,
    limit
  }: { readonly columns?: ReadonlyArray<string>; readonly limit?: number | undefined } = {}
) =>
  Stream.concat(
    Stream.succeed([csvLine(columns)]),
    Stream.mapEffect(pagesOf(scope, filter, limit), (rows) =>
      Effect.map(nameRows(scope, rows), (records) => records.map((record) => csvLine(logCells(record, columns))))
    )
  )
