import type { SqlClient, Statement } from "@effect/sql"
import { Array as Arr, Effect, Schema } from "effect"
import { NanoUsdFromRow, toUsdText } from "../../../domain/Money.ts"
import { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { pluralize } from "../../../domain/Plural.ts"
import type { Instance } from "../../control/Instances.ts"
import type { RouteControl } from "../../control/RouteControls.ts"
import { TextOrNull } from "../../resources/Record.ts"
import type { PublishedHealth } from "../../routing/RouteHealth.ts"
import { type Row, rowsOf } from "../../sql/Statement.ts"
import type { Usage } from "../../telemetry/Usage.ts"
import { dayMillis, floor, hourMillis, keepForMinute } from "./Figures.ts"
import type { Attention, Circuit } from "./Record.ts"

const watchedMinutes = 15
const fewestFailures = 3
const newestRequests = 2_000

/** Codes of errors that are not the request's; a 503 of a gateway that is busy or restarts has none. */
const failureCodes = ["upstream_error", "no_provider_available", "timeout", "internal_error", "stream_error"]

const Failing = Schema.Struct({ model: Schema.String, failed: Schema.Number })

/** Circuits stay closed where the failures in a row are few, or of one customer. */
const readFailing = (sql: SqlClient.SqlClient, now: Date) =>
  Effect.map(
    rowsOf(Failing)(sql`
      SELECT model, count(*)::int AS failed FROM (
        SELECT model, status, coalesce(code = ANY (${failureCodes}::text[]), false) AS has_failed FROM request_log
        WHERE at > ${now}::timestamptz - ${watchedMinutes} * interval '1 minute' AND at <= ${now}::timestamptz
        ORDER BY at DESC, id DESC LIMIT ${newestRequests}
      ) AS newest
      WHERE model IS NOT NULL AND (status < 400 OR has_failed)
      GROUP BY model HAVING count(*) >= ${fewestFailures} AND bool_and(has_failed)`),
    (rows) => new Map(rows.map(({ failed, model }) => [model, failed]))
  )

/** What needs attention, one for each row that a statement finds. */
const attentionOf = <A, I>(
  schema: Schema.Schema<A, I>,
  statement: Statement.Statement<Row>,
  toAttention: (row: A) => Attention
) => Effect.map(rowsOf(schema)(statement), Arr.map(toAttention))

interface Routes {
  readonly health: ReadonlyArray<PublishedHealth>
  readonly disabled: ReadonlyArray<RouteControl>
}

/** Each instance publishes every route of the models that it was asked for. */
const findRouteless = ({ disabled, health }: Routes): ReadonlyMap<string, ReadonlyArray<PublishedHealth>> => {
  const off = new Set(disabled.map(({ id }) => id))
  const works = ({ circuit, route }: PublishedHealth) => circuit === "closed" && !off.has(route)
  const ofInstances = Object.values(Arr.groupBy(health, ({ instanceId, model }) => `${instanceId} ${model}`))
  return new Map(ofInstances.filter((routes) => !routes.some(works)).map((routes) => [routes[0].model, routes]))
}

const stateOf = ({ circuit, lastError, route }: PublishedHealth): string =>
  circuit === "closed" ? `${route} is disabled` : `${route}: ${lastError ?? circuit}`

/** Models that no customer gets an answer of. */
const downModels = (sql: SqlClient.SqlClient, routes: Routes, now: Date) =>
  Effect.map(readFailing(sql, now), (failing) => {
    const routeless = findRouteless(routes)
    return [...new Set([...routeless.keys(), ...failing.keys()])].toSorted().map((model): Attention => {
      const found = routeless.get(model)
      const failed = failing.get(model)
      const parts = [
        ...(found === undefined ? [] : [`No route works (${found.map(stateOf).join("; ")}).`]),
        ...(failed === undefined ? [] : [`All of its last ${failed} requests failed.`])
      ]
      return { kind: "model_down", title: `${model} is down`, detail: parts.join(" "), href: "#/routes" }
    })
  })

const PaymentRow = Schema.Struct({
  id: Schema.String,
  org: TextOrNull,
  orgName: TextOrNull,
  amount: Schema.NullOr(NanoUsdFromRow),
  detail: Schema.String
})
type PaymentRow = typeof PaymentRow.Type

const paymentAmountOf = ({ amount }: PaymentRow) => (amount === null ? "" : ` of ${toUsdText(amount)} USD`)

const paymentPlaceOf = ({ id, org, orgName }: PaymentRow) => ({
  ...(org !== null && { org }),
  ...(orgName !== null && { org_name: orgName }),
  href: `#/payments/${id}`
})

/** Until it is given back whole, or entered by hand under its reference. */
const refusedPayments = (sql: SqlClient.SqlClient) =>
  attentionOf(
    PaymentRow,
    sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, amount, problem AS detail
      FROM payments AS payment LEFT JOIN organizations ON organizations.id = org_id
      WHERE status = 'refused' AND NOT EXISTS (
        SELECT FROM ledger_entries AS entered WHERE entered.ref = 'stripe:' || payment.payment_intent
      ) AND CASE WHEN amount IS NULL
        THEN NOT EXISTS (
          SELECT FROM payment_reversals AS reversal
          WHERE payment_id = payment.id AND (reversal.amount > 0 OR foreign_amount IS NOT NULL)
        )
        ELSE amount > (
          SELECT coalesce(sum(reversal.amount), 0) FROM payment_reversals AS reversal WHERE payment_id = payment.id
        )
      END
      AND (org_id IS NOT NULL OR payment_intent IS NOT NULL)
      ORDER BY org_id IS NULL, payment.id DESC LIMIT ${maxOfAKind}`,
    (row) => ({
      kind: "payment_refused",
      title: `The payment ${row.id}${paymentAmountOf(row)} was not credited`,
      detail: row.detail,
      ...paymentPlaceOf(row)
    })
  )

const disputed = (sql: SqlClient.SqlClient) =>
  attentionOf(
    PaymentRow,
    sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.id AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE is_open AND kind = 'dispute' ORDER BY payment.id DESC LIMIT ${maxOfAKind}`,
    (row) => ({
      kind: "payment_disputed",
      title: `The payment ${row.id}${paymentAmountOf(row)} is disputed`,
      detail: `Answer the dispute ${row.detail} at Stripe before its deadline.`,
      ...paymentPlaceOf(row)
    })
  )

const ForeignRow = Schema.Struct({ ...PaymentRow.fields, kind: Schema.String, reversal: Schema.String })

/** A payment that was not credited has nothing to charge back. */
const foreign = (sql: SqlClient.SqlClient) =>
  attentionOf(
    ForeignRow,
    sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.kind,
        reversal.id AS reversal, foreign_amount AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE needs_amount AND payment.status = 'paid' ORDER BY payment.id DESC LIMIT ${maxOfAKind}`,
    (row) => ({
      kind: "payment_reversal_amount",
      title: `The ${row.kind} ${row.reversal} of ${row.detail} is not charged yet`,
      detail: `Stripe states no amount in USD. Enter it: gateway payments reverse ${row.id} ${row.reversal} USD.`,
      ...paymentPlaceOf(row)
    })
  )

const paymentProblems = (sql: SqlClient.SqlClient) =>
  Effect.map(Effect.all([refusedPayments(sql), disputed(sql), foreign(sql)]), (found) => found.flat())

const spendDays = 7
const stuckAfterMinutes = 45
const oldAfterMinutes = 120
/** The fourth try comes after about six minutes. */
const failingAfterMinutes = 10
const failedWithinDays = 7
const maxOfAKind = 20

const Owned = { org: Schema.String, orgName: Schema.String }
const ownerOf = ({ org, orgName }: { readonly org: string; readonly orgName: string }) => ({ org, org_name: orgName })

const Funds = Schema.Struct({ ...Owned, available: NanoUsdFromRow })

type Spend = ReadonlyMap<string, bigint>

/** Reads each organization's spend of the last week. */
export const spendReader = ({ report }: typeof Usage.Service) =>
  keepForMinute((now) => {
    const until = floor(now, hourMillis) + hourMillis
    return Effect.map(
      report(OrganizationScope.all, { by: "org", since: until - spendDays * dayMillis, until }),
      ({ rows }): Spend =>
        new Map(rows.flatMap(({ charge, group }) => (group !== null && charge > 0n ? [[group, charge]] : [])))
    )
  })

/** What is available lasts for less than a week at the pace of the last one. */
const lowBalances = (sql: SqlClient.SqlClient, spent: Spend) =>
  Effect.gen(function* () {
    const funds = yield* rowsOf(Funds)(sql`
      SELECT id AS org, name AS org_name, balance - held AS available FROM organizations
      WHERE id = ANY (${[...spent.keys()]}::text[]) AND suspended_at IS NULL AND deleted_at IS NULL`)
    return funds
      .flatMap((one) => {
        const spend = spent.get(one.org) ?? 0n
        const days = (Math.max(0, Number(one.available)) / Number(spend)) * spendDays
        return one.available < spend ? [{ ...one, days, daily: spend / BigInt(spendDays) }] : []
      })
      .toSorted((a, b) => a.days - b.days)
      .slice(0, maxOfAKind)
      .map(
        (one): Attention => ({
          kind: "low_balance",
          title: `${one.orgName} runs low`,
          detail: `${one.days.toFixed(1)} days left: ${toUsdText(one.available)} USD available, ${toUsdText(one.daily)} USD spent a day.`,
          ...ownerOf(one),
          href: `#/organizations/${one.org}`
        })
      )
  })

const Stuck = Schema.Struct({ ...Owned, id: Schema.String, status: Schema.String, minutes: Schema.Number })

const stuckVideos = (sql: SqlClient.SqlClient, now: Date) =>
  attentionOf(
    Stuck,
    sql`
      SELECT v.id, v.status, v.org_id AS org, o.name AS org_name,
        floor(extract(epoch FROM ${now}::timestamptz - v.created_at) / 60)::int AS minutes
      FROM videos v JOIN organizations o ON o.id = v.org_id
      WHERE v.status IN ('queued', 'in_progress')
        AND (v.created_at < ${now}::timestamptz - ${stuckAfterMinutes} * interval '1 minute' OR v.deadline < ${now}::timestamptz)
      ORDER BY v.created_at LIMIT ${maxOfAKind}`,
    (video) => ({
      kind: "stuck_video",
      title: `The video ${video.id} does not finish`,
      detail: `It has been ${video.status} for ${pluralize(video.minutes, "minute")}.`,
      ...ownerOf(video),
      href: `#/videos/${video.id}`
    })
  )

const Undelivered = Schema.Struct({
  ...Owned,
  url: Schema.String,
  events: Schema.Number,
  failure: TextOrNull
})

interface Undeliveries {
  readonly kind: "webhook_failing" | "webhook_failed"
  readonly said: string
  /** At most a thousand are looked at, in this order. */
  readonly chosen: string
  readonly isOfTime: Statement.Fragment
}

const findUndelivered = (sql: SqlClient.SqlClient, { chosen, isOfTime, kind, said }: Undeliveries) =>
  attentionOf(
    Undelivered,
    sql`
      SELECT d.org_id AS org, o.name AS org_name, d.url, count(*)::int AS events,
        (array_agg(d.failure ORDER BY d.id DESC))[1] AS failure
      FROM (SELECT * FROM webhook_deliveries WHERE ${sql.literal(chosen)} LIMIT 1000) AS d
      JOIN organizations o ON o.id = d.org_id
      WHERE ${isOfTime} GROUP BY 1, 2, 3 ORDER BY max(d.id) DESC LIMIT ${maxOfAKind}`,
    (one) => ({
      kind,
      title: `${one.orgName} does not take webhooks`,
      detail: `${one.events} ${said} for ${one.url}: ${one.failure ?? "no reason is known"}`,
      ...ownerOf(one),
      href: `#/webhooks?organization=${one.org}`
    })
  )

const failingWebhooks = (sql: SqlClient.SqlClient, now: Date) =>
  findUndelivered(sql, {
    kind: "webhook_failing",
    said: `tried for more than ${failingAfterMinutes} minutes`,
    chosen: "next_at IS NOT NULL AND tries > 0 ORDER BY next_at",
    isOfTime: sql`d.created_at < ${now}::timestamptz - ${failingAfterMinutes} * interval '1 minute'`
  })

const failedWebhooks = (sql: SqlClient.SqlClient, now: Date) =>
  findUndelivered(sql, {
    kind: "webhook_failed",
    said: "given up",
    chosen: "state = 'failed' ORDER BY id DESC",
    isOfTime: sql`d.created_at > ${now}::timestamptz - ${failedWithinDays} * interval '1 day'`
  })

const Old = Schema.Struct({ ...Owned, id: Schema.String, amount: NanoUsdFromRow, minutes: Schema.Number })

/** Holds of videos last as long as these. */
const oldHolds = (sql: SqlClient.SqlClient, now: Date) =>
  attentionOf(
    Old,
    sql`
      SELECT h.id, h.org_id AS org, o.name AS org_name, h.amount,
        floor(extract(epoch FROM ${now}::timestamptz - h.created_at) / 60)::int AS minutes
      FROM all_holds h JOIN organizations o ON o.id = h.org_id
      WHERE h.state = 'open' AND NOT h.is_job
        AND h.created_at < ${now}::timestamptz - ${oldAfterMinutes} * interval '1 minute'
      ORDER BY h.created_at LIMIT ${maxOfAKind}`,
    (hold) => ({
      kind: "old_hold",
      title: `A hold of ${hold.orgName} stays open`,
      detail: `${toUsdText(hold.amount)} USD have been held for ${pluralize(hold.minutes, "minute")}.`,
      ...ownerOf(hold),
      href: `#/holds?organization=${hold.org}`
    })
  )

const nameOf = ({ host, id, pid }: Instance) => (host === null ? id : `${host}:${pid}`)

const catalogProblems = (instances: ReadonlyArray<Instance>): ReadonlyArray<Attention> => {
  const running = instances.filter(({ state }) => state === "running")
  const refused = running.flatMap(
    (one): ReadonlyArray<Attention> =>
      one.problem === null
        ? []
        : [
            {
              kind: "catalog_problem",
              title: `${nameOf(one)} refused the catalog`,
              detail: one.problem,
              href: "#/settings"
            }
          ]
  )
  const served = running.flatMap((one) => (one.fingerprint === null ? [] : [`${nameOf(one)} ${one.fingerprint}`]))
  const fingerprints = new Set(running.flatMap(({ fingerprint }) => fingerprint ?? []))
  if (fingerprints.size < 2) return refused
  const title = "Instances serve different catalogs"
  return [...refused, { kind: "catalog_problem", title, detail: served.join(", "), href: "#/settings" }]
}

const unusedRoutes = (circuits: ReadonlyArray<Circuit>) =>
  circuits.flatMap(({ last_error, note, route, state }): ReadonlyArray<Attention> => {
    if (state === "half_open") return []
    return state === "open"
      ? [{ kind: "circuit", title: `${route} is not called`, detail: last_error ?? "It failed.", href: "#/routes" }]
      : [
          {
            kind: "route_disabled",
            title: `${route} is disabled`,
            detail: note ?? "No note says why.",
            href: "#/routes"
          }
        ]
  })

interface Known {
  readonly spent: Spend
  readonly instances: ReadonlyArray<Instance>
  readonly health: ReadonlyArray<PublishedHealth>
  readonly disabled: ReadonlyArray<RouteControl>
  readonly circuits: ReadonlyArray<Circuit>
  readonly margins: ReadonlyArray<Attention>
}

/** What an operator should look at; each goes when its cause does. */
export const readAttention = (sql: SqlClient.SqlClient, known: Known, now: number) => {
  const at = new Date(now)
  return Effect.map(
    Effect.all([
      downModels(sql, known, at),
      stuckVideos(sql, at),
      oldHolds(sql, at),
      lowBalances(sql, known.spent),
      failingWebhooks(sql, at),
      failedWebhooks(sql, at),
      paymentProblems(sql)
    ]),
    ([down, ...found]) => [
      ...down,
      ...unusedRoutes(known.circuits),
      ...catalogProblems(known.instances),
      ...known.margins,
      ...found.flat()
    ]
  )
}
