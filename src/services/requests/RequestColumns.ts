import type { SqlClient, Statement } from "@effect/sql"
import { Record, Schema, String } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull } from "../resources/ResourceRecord.ts"
import { whenDefined } from "../sql/SqlStatement.ts"
import { requestCounts } from "./RequestCounts.ts"

export const RequestError = Schema.NullOr(
  Schema.Struct({
    param: TextOrNull.annotations({ description: "The invalid request field, or null." }),
    message: Schema.String,
    hint: TextOrNull.annotations({ description: "How to fix it." })
  })
).annotations({ description: "The error in the response. Null if the request succeeded." })

export const requestErrorFields = ["param", "message", "hint"] as const satisfies ReadonlyArray<
  keyof NonNullable<typeof RequestError.Type>
>

const Attempt = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String,
  status: Schema.optional(Schema.Number),
  ms: Schema.Number,
  detail: Schema.optional(Schema.String),
  providerRequestId: Schema.optional(Schema.String).pipe(Schema.fromKey("provider_request_id")),
  /** The cost of a failed attempt. The cost of the row does not include it. */
  cost: Schema.optional(NanoUsdFromRow).pipe(Schema.fromKey("cost_nano")),
  /** The cost that the provider reported for a failed attempt. */
  statedCost: Schema.optional(NanoUsdFromRow).pipe(Schema.fromKey("stated_nano"))
})

/** Returns the attempts of a row, with its provider request id `id` added to the last one if no attempt has it. */
export const withProviderId = <K extends string, A extends { readonly [key in K]?: string | undefined }>(
  key: K,
  attempts: ReadonlyArray<A>,
  id: string | null
): ReadonlyArray<A> =>
  id === null || attempts.some((attempt) => attempt[key] === id)
    ? attempts
    : attempts.map((attempt, index) => (index === attempts.length - 1 ? { ...attempt, [key]: id } : attempt))

/** The columns of `request_log` with their schemas. */
export const requestColumns = {
  id: Schema.String,
  request_id: Schema.String,
  at: Schema.DateFromSelf,
  surface: Schema.String,
  status: Schema.Number,
  code: TextOrNull,
  error: RequestError,
  org_id: OrgId,
  key_id: KeyId,
  address: TextOrNull,
  user_agent: TextOrNull,
  /** The customer's name for the end user. */
  end_user: TextOrNull,
  /** Groups the usage of the customer in reports. */
  tag: TextOrNull,
  model: TextOrNull,
  route: TextOrNull,
  /** The route with the conversation's prompt cache. */
  preferred_route: TextOrNull,
  provider: TextOrNull,
  stream: Schema.Boolean,
  attempts: Schema.Array(Attempt),
  /** From the last attempt with an id. */
  provider_request_id: TextOrNull,
  notes: Schema.Array(Schema.String),
  ...Record.map(requestCounts, () => Schema.NullOr(Schema.NumberFromString)),
  hold_id: TextOrNull,
  charge: NanoUsdFromRow,
  cost: Schema.NullOr(NanoUsdFromRow),
  /** The cost that the provider reported for the answer. */
  stated_cost: Schema.NullOr(NanoUsdFromRow),
  /** References `price_lists`; null if the rates are unknown. */
  price_id: TextOrNull,
  first_byte_ms: Schema.NullOr(Schema.Number),
  total_ms: Schema.Number
}

export type RequestColumn = keyof typeof requestColumns
export const columnNames = Record.keys(requestColumns)

/**
 * Columns that `usage_parts()` counts for a log row and `add_usage()` adds to `usage_totals`, both in
 * `migrations/functions/usage_totals.sql`. Tagged rows also count in `usage_tag_totals`. `stated_cost` is the cost that
 * providers reported, `compared_cost` the catalog's cost of the requests that have one, and `cost_drift` the reported
 * cost minus `compared_cost`.
 */
export const totalColumns = [
  "requests",
  "errors",
  ...Record.keys(requestCounts),
  "charge",
  "cost",
  "margin",
  "costed",
  "uncosted",
  "stated_cost",
  "compared_cost",
  "cost_drift"
]

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

/** Returns the field name of a column in the database client's rows. */
function toField<Name extends string>(column: Name): CamelCase<Name>
function toField(column: string): string {
  return String.snakeToCamel(column)
}

type Fields<Columns> = { readonly [Name in keyof Columns & string as CamelCase<Name>]: Columns[Name] }

export function toFields<Columns extends Schema.Struct.Fields>(columns: Columns): Fields<Columns>
export function toFields(columns: Readonly<Record<string, Schema.Struct.Field>>) {
  return Record.mapKeys(columns, toField)
}

/** The row fields of counts, keyed by their names in the API. */
export const countFields = Record.mapEntries(requestCounts, ({ name }, column) => [name, toField(column)])

const dashes = /-/g
const generatedId = /^req_([0-9a-f]{32})$/

/** Returns the `x-request-id` for a request without one. `id` is the id of the log row. */
export const requestIdOf = (id: string): string => `req_${id.replace(dashes, "")}`

/** Returns the Unix milliseconds of a version 7 UUID. For a log row, they are the arrival time of its request. */
export const timeOf = (id: string): number => Number.parseInt(id.replace(dashes, "").slice(0, 12), 16)

/** Must match the partial index `request_log_chosen_id`. */
const isClientId = "request_id <> 'req_' || replace(id::text, '-', '')"

/** Returns a query for the ids of the rows with this request id. */
export const selectIds = (sql: SqlClient.SqlClient, requestId: string): Statement.Fragment => {
  const clientIds = sql`SELECT id FROM request_log WHERE request_id = ${requestId} AND ${sql.literal(isClientId)}`
  const uuid = generatedId.exec(requestId)?.[1]
  return uuid === undefined
    ? clientIds
    : sql`${clientIds} UNION SELECT id FROM request_log WHERE id = ${uuid}::uuid AND request_id = ${requestId}`
}

/** SQL for errors of the gateway or a provider: a 5xx or a broken stream. NULL, not false, without a code. */
export const isError = "(status >= 500 OR code = 'stream_error')"

/** Returns conditions for rows whose `at` is in the range, in a form that an index of ids serves. */
export const inLogSpan = (
  sql: SqlClient.SqlClient,
  { since, until }: { readonly since?: number | undefined; readonly until?: number | undefined }
): ReadonlyArray<Statement.Fragment> => [
  ...whenDefined(since, (from) => {
    const time = sql`${new Date(from)}::timestamptz`
    return sql`id >= first_log_id(${time}) AND at >= ${time}`
  }),
  ...whenDefined(until, (to) => {
    const time = sql`${new Date(to)}::timestamptz`
    return sql`id < log_id_limit(${time}) AND at < ${time}`
  })
]
