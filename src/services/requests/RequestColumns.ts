import { Record, Schema, String } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { RequestError } from "../../domain/RequestError.ts"
import { TextOrNull } from "../resources/Record.ts"
import { requestCounts } from "./RequestCounts.ts"

const Attempt = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  outcome: Schema.String,
  status: Schema.optional(Schema.Number),
  ms: Schema.Number,
  detail: Schema.optional(Schema.String),
  providerRequestId: Schema.optional(Schema.String).pipe(Schema.fromKey("provider_request_id")),
  /** What a failed attempt costs, beside the row's own cost. */
  cost: Schema.optional(NanoUsdFromRow).pipe(Schema.fromKey("cost_nano")),
  /** What the provider says a failed attempt costs. */
  statedCost: Schema.optional(NanoUsdFromRow).pipe(Schema.fromKey("stated_nano"))
})

/** The columns of `request_log`, and what is read of each. */
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
  /** Who uses the customer's product, as the customer names them. */
  end_user: TextOrNull,
  /** What the customer's usage is added up by. */
  tag: TextOrNull,
  model: TextOrNull,
  route: TextOrNull,
  /** The one that had the conversation's prompt cache. */
  preferred_route: TextOrNull,
  provider: TextOrNull,
  stream: Schema.Boolean,
  attempts: Schema.Array(Attempt),
  /** From the last attempt that has one. */
  provider_request_id: TextOrNull,
  notes: Schema.Array(Schema.String),
  ...Record.map(requestCounts, () => Schema.NullOr(Schema.NumberFromString)),
  hold_id: TextOrNull,
  charge: NanoUsdFromRow,
  cost: Schema.NullOr(NanoUsdFromRow),
  /** What the provider says that the answer cost. */
  stated_cost: Schema.NullOr(NanoUsdFromRow),
  /** Of the rates in `price_lists`; null where nothing says by which it was charged. */
  price_id: TextOrNull,
  first_byte_ms: Schema.NullOr(Schema.Number),
  total_ms: Schema.Number
}

export type RequestColumn = keyof typeof requestColumns
export const columnNames = Record.keys(requestColumns)

/**
 * What `usage_parts()` counts of a row of the log and `add_usage()` adds to `usage_totals`, both in SQL: the newest are in
 * migration 0039, and name these columns and those of the type `usage_part`. What has a tag is in `usage_tag_totals` once more.
 * `compared_cost` is the cost of what has a stated one too, and `cost_drift` by how much that is more.
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

/** What the client calls a column in its rows. */
function toField<Name extends string>(column: Name): CamelCase<Name>
function toField(column: string): string {
  return String.snakeToCamel(column)
}

type Fields<Columns> = { readonly [Name in keyof Columns & string as CamelCase<Name>]: Columns[Name] }

export function toFields<Columns extends Schema.Struct.Fields>(columns: Columns): Fields<Columns>
export function toFields(columns: Readonly<Record<string, Schema.Struct.Field>>) {
  return Record.mapKeys(columns, toField)
}

/** The fields of counts in rows, by their names on the wire. */
export const countFields = Record.mapEntries(requestCounts, ({ name }, column) => [name, toField(column)])

const group = "hour, org_id, key_id, model, route, provider, surface, status, is_sold"
const added = totalColumns.map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const shown = `${group}, ${totalColumns.join(", ")}`

/** As `usage_tags` numbers them. */
const maxTagsPerDay = 1_000

/**
 * The SQL before and after a query of `usage_parts()` that sums it by tag. New tags of a day, in order, get the numbers that
 * are left; the rest is summed as `other`.
 */
export const taggedParts = {
  before: `
    SELECT ${shown},
      CASE WHEN NOT is_new OR dense_rank() OVER (PARTITION BY day, org_id, is_new ORDER BY tag) <= ${maxTagsPerDay} - (
        SELECT coalesce(max(number), 0) FROM usage_tags WHERE day = summed.day AND org_id = summed.org_id
      ) THEN tag ELSE 'other' END AS tag
    FROM (
      SELECT sums.*, sums.tag NOT IN ('', 'other') AND own.tag IS NULL AS is_new
      FROM (SELECT ${group}, usage_day(hour) AS day, tag, ${added} FROM (`,
  after: `) AS parts GROUP BY ${group}, tag) AS sums
      LEFT JOIN usage_tags AS own ON own.day = sums.day AND own.org_id = sums.org_id AND own.tag = sums.tag
    ) AS summed`
}
