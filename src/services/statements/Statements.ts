import { SqlClient } from "@effect/sql"
import { Clock, Context, Data, Effect, Layer, Schedule, Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import { creditKindOf, periodText, statementNumber } from "../../domain/Documents.ts"
import type { GatewayBusy } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { type Month, month, monthAt } from "../../domain/Month.ts"
import { OrgId } from "../../domain/Organization.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { EntryKind, kindOf } from "../ledger/Entry.ts"
import { rowSchema, TextOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { Ids } from "../runtime/Ids.ts"
import { publicId } from "../sql/Listing.ts"
import { logFailure } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import { makeCustomerReads } from "../telemetry/CustomerUsage.ts"
import { eventLiteral } from "../webhooks/WebhookEvents.ts"
import { DocumentSeller, documentFields, documentFieldsOf } from "./Seller.ts"

export const StatementEntry = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds.annotations({ jsonSchema: { type: "integer", description: "Unix seconds." } }),
  amount_usd: Usd.annotations({ description: "The change of the balance." }),
  ref: TextOrNull
}).annotations({ identifier: "StatementEntry" })
export type StatementEntry = typeof StatementEntry.Type

const StatementUsage = Schema.Struct({
  model: TextOrNull.annotations({ description: "Null for charges without a request record." }),
  surface: TextOrNull,
  requests: Integer.annotations({ description: "The charged requests." }),
  prompt_tokens: Integer,
  completion_tokens: Integer,
  images: Integer,
  seconds: Integer.annotations({ description: "Seconds of video." }),
  charge_usd: Usd.annotations({
    description: "The charges before refunds. Refunds are listed in their own month."
  })
}).annotations({ identifier: "StatementUsage" })
type StatementUsage = typeof StatementUsage.Type

const DiscountChange = Schema.Struct({
  at: UnixSeconds,
  from_percent: Schema.Number,
  to_percent: Schema.Number
}).annotations({ identifier: "DiscountChange" })
type DiscountChange = typeof DiscountChange.Type

/** The closing balance always equals the opening balance plus the listed entries minus the charges. */
export const Statement = Schema.Struct({
  object: Schema.Literal("statement"),
  number: Schema.String.annotations({ description: "The statement's unique number. It never changes." }),
  organization: OrgId,
  organization_name: Schema.String,
  month: Schema.String,
  period: Schema.String.annotations({ description: "The period in words, such as `1 to 30 November 2026`." }),
  closed: Schema.Boolean.annotations({ description: "Whether the month has ended and all its entries are final." }),
  ...documentFields,
  discount_percent: Schema.Number.annotations({
    description:
      "The organization's discount at the end of the month, or today's in the current month. Charges include the discount of their time."
  }),
  discount_changes: Schema.Array(DiscountChange).annotations({
    description: "The changes of the discount in the period, oldest first."
  }),
  opening_usd: Usd,
  closing_usd: Usd.annotations({
    description: "The opening balance of the next month. For the current month, the balance now."
  }),
  payments: Schema.Array(StatementEntry).annotations({
    description: "Payments, whose `ref` begins with `stripe:`, and top-ups, which the operator entered."
  }),
  reversals: Schema.Array(StatementEntry).annotations({ description: "Refunds and disputes of payments." }),
  refunds: Schema.Array(StatementEntry).annotations({ description: "Refunds of charges of any month." }),
  adjustments: Schema.Array(StatementEntry),
  usage: Schema.Array(StatementUsage),
  total_charge_usd: Usd
}).annotations({ identifier: "Statement", description: "The payments, usage and charges of a UTC month." })
export type Statement = typeof Statement.Type

/** The `line` column of each section's CSV lines. */
const sections = {
  payments: ({ ref }: StatementEntry) => creditKindOf(ref),
  reversals: () => "payment reversal",
  refunds: () => "refund",
  adjustments: () => "adjustment"
} as const
type Section = keyof typeof sections
const sectionNames: ReadonlyArray<Section> = ["payments", "reversals", "refunds", "adjustments"]

export const lineColumns = [
  "line",
  "at",
  "model",
  "surface",
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "images",
  "seconds",
  "amount_usd",
  "ref"
] as const

type Cells = {
  readonly [Column in (typeof lineColumns)[number]]?: Exclude<CsvCell, ReadonlyArray<string>>
}
type StatementLine = Cells & { readonly amount_usd: bigint }

/** The last line is the closing balance, which is the sum of all other lines. */
export const linesOf = (statement: Statement): ReadonlyArray<StatementLine> => [
  { line: "opening balance", amount_usd: statement.opening_usd },
  ...sectionNames.flatMap((section) =>
    statement[section].map((entry) => {
      const { amount_usd, at, ref } = entry
      return { line: sections[section](entry), at, amount_usd, ref }
    })
  ),
  ...statement.usage.map(({ charge_usd, model, surface, ...counts }) => ({
    line: "usage",
    model: model ?? "other",
    surface,
    ...counts,
    amount_usd: -charge_usd
  })),
  { line: "closing balance", amount_usd: statement.closing_usd }
]

export const csvLinesOf = (statement: Statement): ReadonlyArray<string> => [
  csvLine(lineColumns),
  ...linesOf(statement).map((line) => csvLine(lineColumns.map((column) => line[column])))
]

const counts = ["requests", "prompt_tokens", "completion_tokens", "images", "seconds"]
const sums = [...counts, "charge"].map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const columns = `model, surface, ${counts.join(", ")}, charge`

const addedUntil = "(SELECT added_until FROM monthly_charges_progress)"

/** Builds amounts as text, because JSON numbers would lose precision. */
const usageJson = `json_build_object('model', nullif(model, ''), 'surface', nullif(surface, ''), ${counts
  .map((name) => `'${name}', ${name}`)
  .join(", ")}, 'charge_usd', charge::text) ORDER BY charge DESC, model, surface`

const entryJson = `json_build_object('id', ${publicId("ledger_entries", "e")}, 'at', floor(extract(epoch FROM e.at)), 'kind', ${kindOf("e")},
  'amount', e.amount::text, 'ref', e.ref) ORDER BY e.at, e.id`

/**
 * One SQL query reads the monthly totals and the charges that are not in them yet. Entries of other kinds are few and have no
 * totals.
 */
const statementOf = (sql: SqlClient.SqlClient, org: OrgId, { from, name, to }: Month) => {
  const [begin, end, first] = [new Date(from), new Date(to), `${name}-01`]
  return sql`
    WITH usage AS (
      SELECT model, surface, ${sql.literal(sums)} FROM (
        SELECT ${sql.literal(columns)} FROM monthly_charges WHERE org_id = ${org} AND month = ${first}::date
        UNION ALL
        SELECT model, surface, 1, prompt_tokens, completion_tokens, images, seconds, charge FROM charge_details
        WHERE org_id = ${org} AND at >= greatest(${begin}, ${sql.literal(addedUntil)}) AND at < ${end}
      ) AS parts GROUP BY 1, 2
    ), before AS (
      SELECT (
        SELECT coalesce(sum(amount), 0) FROM ledger_entries WHERE org_id = ${org} AND kind <> 'charge' AND at < ${begin}
      ) + (
        SELECT coalesce(sum(amount), 0) FROM ledger_entries
        WHERE org_id = ${org} AND kind = 'charge' AND at >= ${sql.literal(addedUntil)} AND at < ${begin}
      ) - (
        SELECT coalesce(sum(charge), 0) FROM monthly_charges WHERE org_id = ${org} AND month < ${first}::date
      ) AS balance
    )
    SELECT balance::text AS opening,
      (SELECT coalesce(json_agg(${sql.literal(usageJson)}), '[]') FROM usage) AS usage,
      (
        SELECT coalesce(json_agg(${sql.literal(entryJson)}), '[]') FROM ledger_entries AS e
        WHERE org_id = ${org} AND kind <> 'charge' AND at >= ${begin} AND at < ${end}
      ) AS entries
    FROM before`.withoutTransform
}

class NoStatement extends Data.TaggedError("NoStatement")<{ readonly month: string; readonly reason: string }> {
  override get message() {
    return `There is no statement of ${this.month}: ${this.reason}.`
  }
}

const StatementRow = Schema.Struct({
  opening: NanoUsdFromRow,
  usage: Schema.Array(rowSchema(StatementUsage)),
  entries: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      at: Schema.Number,
      kind: EntryKind,
      amount: NanoUsdFromRow,
      ref: Schema.NullOr(Schema.String)
    })
  )
})
type StatementRow = typeof StatementRow.Type

const sectionOf: Readonly<Record<EntryKind, Section | undefined>> = {
  top_up: "payments",
  charge: undefined,
  refund: "refunds",
  payment_reversal: "reversals",
  adjustment: "adjustments"
}

const changesJson = `json_build_object('at', floor(extract(epoch FROM at)),
  'from_percent', coalesce((before ->> 'discount_percent')::float8, 0),
  'to_percent', coalesce((after ->> 'discount_percent')::float8, 0)) ORDER BY id`

/**
 * Reads the customer, and all changes of its discount since the month began, from the audit log. Other actions' records are
 * not read, because PostgreSQL cannot read some of their texts.
 */
const profileOf = (sql: SqlClient.SqlClient, org: OrgId, { from, to }: Month) => sql`
  SELECT name, created_at, discount_percent, ${new Date(to)}::timestamptz <= entries_complete_until() AS is_closed, (
    SELECT coalesce(json_agg(${sql.literal(changesJson)}), '[]') FROM audit
    WHERE target = organizations.id AND at >= ${new Date(from)} AND CASE WHEN action = 'organizations.update'
      THEN before ->> 'discount_percent' IS DISTINCT FROM after ->> 'discount_percent' ELSE false END
  ) AS changes
  FROM organizations WHERE id = ${org}`

const Profile = Schema.Struct({
  name: Schema.String,
  createdAt: Schema.DateFromSelf,
  discountPercent: Schema.Number,
  isClosed: Schema.Boolean,
  changes: Schema.Array(Schema.encodedSchema(DiscountChange))
})
type Profile = typeof Profile.Type

/** The first change after the period has the percentage that the period ended with. */
const discountOf = ({ changes, discountPercent }: Profile, { to }: Month) => {
  const isAfter = ({ at }: Profile["changes"][number]) => at * 1000 >= to
  return {
    discount_percent: changes.find(isAfter)?.from_percent ?? discountPercent,
    discount_changes: changes
      .filter((change) => !isAfter(change))
      .map(({ at, ...percents }): DiscountChange => ({ at: new Date(at * 1000), ...percents }))
  }
}

type StatementHead = Omit<
  Statement,
  "opening_usd" | "closing_usd" | "payments" | "reversals" | "refunds" | "adjustments" | "usage" | "total_charge_usd"
>

const toStatement = (head: StatementHead, { entries, opening, usage }: StatementRow): Statement => {
  const entriesOf = (section: Section) =>
    entries
      .filter(({ kind }) => sectionOf[kind] === section)
      .map(({ amount, at, id, ref }) => ({ id, at: new Date(at * 1000), amount_usd: amount, ref }))
  const total = usage.reduce((sum, { charge_usd }) => sum + charge_usd, 0n)
  return {
    ...head,
    opening_usd: opening,
    closing_usd: entries.reduce((sum, { amount }) => sum + amount, opening - total),
    payments: entriesOf("payments"),
    reversals: entriesOf("reversals"),
    refunds: entriesOf("refunds"),
    adjustments: entriesOf("adjustments"),
    usage,
    total_charge_usd: total
  }
}

/** Monthly statements. They match the ledger even after log rows are deleted. */
export class Statements extends Context.Tag("gateway/Statements")<
  Statements,
  {
    /** The default is the current month. */
    readonly find: (
      scope: OrganizationScope,
      org: OrgId,
      month: Month | undefined
    ) => Effect.Effect<Statement, NoStatement>
    /** Like `find`, with the limits of customers' reports. */
    readonly findForCustomer: (
      org: OrgId,
      month: Month | undefined
    ) => Effect.Effect<Statement, NoStatement | GatewayBusy>
  }
>() {
  static readonly layer = Layer.effect(
    Statements,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const withLimits = yield* makeCustomerReads
      const document = yield* DocumentSeller

      /** Returns the month, and the fields of its statement that do not depend on ledger entries. */
      const findHead = Effect.fnUntraced(function* (org: OrgId, requestedMonth: Month | undefined) {
        const now = yield* Clock.currentTimeMillis
        const current = monthAt(now)
        const month = requestedMonth ?? current
        if (month.from > current.from) return yield* new NoStatement({ month: month.name, reason: "it has not begun" })
        const [profile] = yield* rowsOf(Profile)(profileOf(sql, org, month))
        if (profile === undefined) return yield* Effect.dieMessage(`there is no organization ${org}`)
        const first = monthAt(profile.createdAt.getTime())
        if (month.to <= first.from) {
          const reason = `the organization was created in ${first.name}`
          return yield* new NoStatement({ month: month.name, reason })
        }
        const head: StatementHead = {
          object: "statement",
          number: statementNumber(org, month.name),
          organization: org,
          organization_name: profile.name,
          month: month.name,
          period: periodText(month, profile.isClosed, now),
          closed: profile.isClosed,
          ...documentFieldsOf(document),
          ...discountOf(profile, month)
        }
        return { head, month }
      })

      const decode = (head: StatementHead, statement: Parameters<ReturnType<typeof rowsOf>>[0]) =>
        Effect.flatMap(rowsOf(StatementRow)(statement), ([row]) =>
          row === undefined ? Effect.dieMessage("a statement has no row") : Effect.succeed(toStatement(head, row))
        )

      return Statements.of({
        find: Effect.fn("Statements.find")(function* (scope: OrganizationScope, org: OrgId, month: Month | undefined) {
          const owner = scope.narrow(org) ?? org
          const found = yield* findHead(owner, month)
          return yield* decode(found.head, statementOf(sql, owner, found.month))
        }),
        findForCustomer: Effect.fn("Statements.findForCustomer")(function* (org: OrgId, month: Month | undefined) {
          const found = yield* findHead(org, month)
          const rows = yield* withLimits(org, statementOf(sql, org, found.month))
          return yield* decode(found.head, Effect.succeed(rows))
        })
      })
    })
  )
}

const AddResult = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ more: Schema.Boolean })))

/**
 * Adds charges before `latest` to the monthly totals, oldest first. Does nothing while another gateway adds charges or
 * deletes rows.
 */
export const addCharges = (latest: Date | "infinity" = "infinity") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [{ more }] = yield* Effect.flatMap(sql`SELECT add_charges(${latest}::timestamptz) AS more`, AddResult)
    return more
  }).pipe(Effect.uninterruptible, Effect.repeat({ while: (more) => more }), Effect.asVoid)

export const chargeTotals = Layer.scopedDiscard(
  addCharges().pipe(
    Effect.catchAllCause((cause) => logFailure("Monthly totals of charges could not be updated", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)

const DueMonth = Schema.Struct({ month: Schema.String })
const Owner = Schema.Struct({ orgId: OrgId })

const encode = Schema.encode(
  Schema.parseJson(Statement.pick("month", "opening_usd", "closing_usd", "total_charge_usd"))
)

interface Notice {
  readonly event: string
  readonly org: OrgId
  readonly data: string
}

const hasEntries = (statement: Statement) =>
  statement.usage.length > 0 || sectionNames.some((section) => statement[section].length > 0)

/** Selects the oldest month whose events are not written yet, once all its entries exist and its charges are totalled. */
const selectDueMonth = (sql: SqlClient.SqlClient) => sql`
  SELECT to_char(month, 'YYYY-MM') AS month
  FROM statement_notices, LATERAL (SELECT (month + interval '1 month') AT TIME ZONE 'UTC' AS ends_at) AS bounds
  WHERE ends_at <= entries_complete_until() AND NOT EXISTS (
    SELECT FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress) AND at < ends_at
  )`

/**
 * Claims the month and writes all its events. Writes nothing if another gateway has claimed it. One statement and not a
 * transaction, because the server aborts a transaction that is idle while this gateway is busy.
 */
const writeNotices = (sql: SqlClient.SqlClient, dueMonth: string, notices: ReadonlyArray<Notice>) => sql`
  WITH taken AS (
    UPDATE statement_notices SET month = month + interval '1 month' WHERE month = ${`${dueMonth}-01`}::date RETURNING month
  )
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
  SELECT notice.event_id, endpoint.org_id, endpoint.id, endpoint.url, ${sql.literal(eventLiteral("statement.ready"))}, notice.data::json
  FROM unnest(
    ${notices.map(({ event }) => event)}::text[], ${notices.map(({ org }) => org)}::text[],
    ${notices.map(({ data }) => data)}::text[]
  ) AS notice (event_id, org_id, data)
  JOIN webhook_endpoints AS endpoint ON endpoint.org_id = notice.org_id
  WHERE endpoint.disabled_at IS NULL AND EXISTS (SELECT FROM taken)`

/** Writes the `statement.ready` events of all months that have ended. All gateways together write each event once. */
export const notifyOfStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const { find } = yield* Statements

  const noticesOf = Effect.fnUntraced(
    function* (org: OrgId, dueMonth: string) {
      const statement = yield* find(OrganizationScope.all, org, month(dueMonth))
      if (!hasEntries(statement)) return []
      return [{ event: ids.prefixed("evt"), org, data: yield* encode(statement) }]
    },
    // An organization that was created after the month has no statement.
    Effect.catchTag("NoStatement", () => Effect.succeed([]))
  )

  const notifyOfMonth = Effect.gen(function* () {
    const [due] = yield* rowsOf(DueMonth)(selectDueMonth(sql))
    if (due === undefined) return false
    const owners = yield* rowsOf(Owner)(sql`SELECT DISTINCT org_id FROM webhook_endpoints WHERE disabled_at IS NULL`)
    const notices = yield* Effect.forEach(owners, ({ orgId }) => noticesOf(orgId, due.month))
    yield* writeNotices(sql, due.month, notices.flat())
    return true
  })
  yield* Effect.repeat(notifyOfMonth, { while: (hasMore) => hasMore })
})

export const statementNotices = Layer.scopedDiscard(
  notifyOfStatements.pipe(
    Effect.catchAllCause((cause) => logFailure("The events of statements could not be written", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
