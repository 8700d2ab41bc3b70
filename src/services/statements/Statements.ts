import { SqlClient } from "@effect/sql"
import { Clock, Context, Data, Effect, Layer, Schedule, Schema } from "effect"
import type { GatewayBusy } from "../../domain/Failure.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { type Month, monthAt } from "../../domain/Month.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { EntryKind, kindOf } from "../ledger/Entry.ts"
import { rowSchema } from "../resources/Record.ts"
import { logFailure } from "../sql/Outage.ts"
import { publicId } from "../sql/PublicIds.ts"
import { rowsOf } from "../sql/Statement.ts"
import { makeCustomerReads } from "../telemetry/CustomerUsage.ts"
import { type Section, type Statement, StatementUsage } from "./Statement.ts"

const counts = ["requests", "prompt_tokens", "completion_tokens", "images", "seconds"]
const sums = [...counts, "charge"].map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const columns = `model, surface, ${counts.join(", ")}, charge`

const addedUntil = "(SELECT added_until FROM monthly_charges_progress)"

/** Amounts as text, since JSON's numbers are not exact. */
const usageJson = `json_build_object('model', nullif(model, ''), 'surface', nullif(surface, ''), ${counts
  .map((name) => `'${name}', ${name}`)
  .join(", ")}, 'charge_usd', charge::text) ORDER BY charge DESC, model, surface`

const entryJson = `json_build_object('id', ${publicId("ledger_entries", "e")}, 'at', floor(extract(epoch FROM e.at)), 'kind', ${kindOf("e")},
  'amount', e.amount::text, 'ref', e.ref) ORDER BY e.at, e.id`

/** Charges that are added up, and those that are not yet, in one snapshot; entries of other kinds are few. */
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

class NoStatement extends Data.TaggedError("NoStatement")<{ readonly month: string; readonly why: string }> {
  override get message() {
    return `There is no statement of ${this.month}: ${this.why}.`
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

const toStatement = (org: OrgId, { name }: Month, { entries, opening, usage }: StatementRow): Statement => {
  const of = (section: Section) =>
    entries
      .filter(({ kind }) => sectionOf[kind] === section)
      .map(({ amount, at, id, ref }) => ({ id, at: new Date(at * 1000), amount_usd: amount, ref }))
  const total = usage.reduce((sum, { charge_usd }) => sum + charge_usd, 0n)
  return {
    object: "statement",
    organization: org,
    month: name,
    opening_usd: opening,
    closing_usd: entries.reduce((sum, { amount }) => sum + amount, opening - total),
    payments: of("payments"),
    reversals: of("reversals"),
    refunds: of("refunds"),
    adjustments: of("adjustments"),
    usage,
    total_charge_usd: total
  }
}

const Created = Schema.Struct({ createdAt: Schema.DateFromSelf })

/** What an organization paid and used in a month, equal to the ledger whatever was removed from the log. */
export class Statements extends Context.Tag("gateway/Statements")<
  Statements,
  {
    /** Of the running month where none is given. */
    readonly find: (
      scope: OrganizationScope,
      org: OrgId,
      month: Month | undefined
    ) => Effect.Effect<Statement, NoStatement>
    /** As `find`, within the limits of customers' reports. */
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

      const choose = Effect.fnUntraced(function* (org: OrgId, month: Month | undefined) {
        const running = monthAt(yield* Clock.currentTimeMillis)
        const chosen = month ?? running
        if (chosen.from > running.from) return yield* new NoStatement({ month: chosen.name, why: "it has not begun" })
        const [found] = yield* rowsOf(Created)(sql`SELECT created_at FROM organizations WHERE id = ${org}`)
        const first = found && monthAt(found.createdAt.getTime())
        if (first === undefined || chosen.to > first.from) return chosen
        return yield* new NoStatement({
          month: chosen.name,
          why: `the organization was created in ${first.name}`
        })
      })

      const decode = (org: OrgId, month: Month) => (statement: Parameters<ReturnType<typeof rowsOf>>[0]) =>
        Effect.flatMap(rowsOf(StatementRow)(statement), ([row]) =>
          row === undefined ? Effect.dieMessage("a statement has no row") : Effect.succeed(toStatement(org, month, row))
        )

      return Statements.of({
        find: Effect.fn("Statements.find")(function* (
          scope: OrganizationScope,
          named: OrgId,
          given: Month | undefined
        ) {
          const org = scope.narrow(named) ?? named
          const month = yield* choose(org, given)
          return yield* decode(org, month)(statementOf(sql, org, month))
        }),
        findForCustomer: Effect.fn("Statements.findForCustomer")(function* (org: OrgId, given: Month | undefined) {
          const month = yield* choose(org, given)
          const rows = yield* withLimits(org, statementOf(sql, org, month))
          return yield* decode(org, month)(Effect.succeed(rows))
        })
      })
    })
  )
}

const Added = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ more: Schema.Boolean })))

/** Adds up charges of before `latest`, the oldest first; does nothing while another gateway does, or removes rows. */
export const addCharges = (latest: Date | "infinity" = "infinity") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [{ more }] = yield* Effect.flatMap(sql`SELECT add_charges(${latest}::timestamptz) AS more`, Added)
    return more
  }).pipe(Effect.uninterruptible, Effect.repeat({ while: (more) => more }), Effect.asVoid)

export const chargeTotals = Layer.scopedDiscard(
  addCharges().pipe(
    Effect.catchAllCause((cause) => logFailure("Charges could not be added up for statements", cause)),
    Effect.repeat(Schedule.spaced("1 minute")),
    Effect.forkScoped
  )
)
