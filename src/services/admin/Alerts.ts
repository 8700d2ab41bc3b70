import { SqlClient, type Statement } from "@effect/sql"
import { Array as Arr, Effect, Schema } from "effect"
import { NanoUsdFromRow, toUsdText } from "../../domain/Money.ts"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { pluralize } from "../../domain/Wording.ts"
import { Catalog } from "../catalog/Catalog.ts"
import { saleStateAt } from "../catalog/SaleState.ts"
import type { RouteControl } from "../control/RouteControls.ts"
import type { InstanceRecord } from "../instance/RunningGateway.ts"
import { TextOrNull } from "../resources/ResourceRecord.ts"
import type { RouteHealth } from "../routing/PublishedHealth.ts"
import { type Row, rowsOf } from "../sql/SqlStatement.ts"
import type { Usage } from "../telemetry/Usage.ts"
import { discountLossesOf } from "./CatalogRecord.ts"
import type { Alert, Circuit } from "./DashboardRecord.ts"
import { cacheForMinute, dayMillis, floorTo, hourMillis } from "./Kpis.ts"
import { modelLinkOf, readFailingModels, type ServedRoutes, type Traffic, trafficAlertsOf } from "./RequestAlerts.ts"

const readRowAlerts = <A, I>(
  schema: Schema.Schema<A, I>,
  statement: Statement.Statement<Row>,
  toAlert: (row: A) => Alert
) => Effect.map(rowsOf(schema)(statement), Arr.map(toAlert))

interface Routes {
  readonly health: ReadonlyArray<RouteHealth>
  readonly disabled: ReadonlyArray<RouteControl>
}

/** Returns each model for which an instance has no working route. `health` has all routes of a model once one was requested. */
const findModelsWithoutRoute = ({ disabled, health }: Routes): ReadonlyMap<string, ReadonlyArray<RouteHealth>> => {
  const disabledIds = new Set(disabled.map(({ id }) => id))
  const isWorking = ({ circuit, route }: RouteHealth) => circuit === "closed" && !disabledIds.has(route)
  const routeGroups = Object.values(Arr.groupBy(health, ({ instanceId, model }) => `${instanceId} ${model}`))
  return new Map(routeGroups.filter((routes) => !routes.some(isWorking)).map((routes) => [routes[0].model, routes]))
}

const stateOf = ({ circuit, lastError, route }: RouteHealth): string =>
  circuit === "closed" ? `${route} is disabled` : `${route}: ${lastError ?? circuit}`

const readDownModels = (sql: SqlClient.SqlClient, routes: Routes, now: number) =>
  Effect.map(readFailingModels(sql, now), (failing) => {
    const withoutRoute = findModelsWithoutRoute(routes)
    return [...new Set([...withoutRoute.keys(), ...failing.keys()])].toSorted().map((model): Alert => {
      const failedRoutes = withoutRoute.get(model)
      const failedCount = failing.get(model)
      const parts = [
        ...(failedRoutes === undefined ? [] : [`No route works (${failedRoutes.map(stateOf).join("; ")}).`]),
        ...(failedCount === undefined ? [] : [`All of its last ${failedCount} requests failed.`])
      ]
      return { kind: "model_down", title: `${model} is down`, detail: parts.join(" "), href: modelLinkOf(model) }
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

const paymentLinkOf = ({ id, org, orgName }: PaymentRow) => ({
  ...(org !== null && { org }),
  ...(orgName !== null && { org_name: orgName }),
  href: `#/payments/${id}`
})

/** Omits refused payments that are fully refunded, or that an operator has credited with their reference. */
const readRefusedPayments = (sql: SqlClient.SqlClient) =>
  readRowAlerts(
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
      ORDER BY org_id IS NULL, payment.id DESC LIMIT ${maxPerKind}`,
    (row) => ({
      kind: "payment_refused",
      title: `The payment ${row.id}${paymentAmountOf(row)} was not credited`,
      detail: row.detail,
      ...paymentLinkOf(row)
    })
  )

const readDisputes = (sql: SqlClient.SqlClient) =>
  readRowAlerts(
    PaymentRow,
    sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.id AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE is_open AND kind = 'dispute' ORDER BY payment.id DESC LIMIT ${maxPerKind}`,
    (row) => ({
      kind: "payment_disputed",
      title: `The payment ${row.id}${paymentAmountOf(row)} is disputed`,
      detail: `Respond to the dispute ${row.detail} at Stripe before its deadline.`,
      ...paymentLinkOf(row)
    })
  )

const ForeignRow = Schema.Struct({ ...PaymentRow.fields, kind: Schema.String, reversal: Schema.String })

/** Omits refunds of refused payments, because they take no credits. */
const readForeignReversals = (sql: SqlClient.SqlClient) =>
  readRowAlerts(
    ForeignRow,
    sql`
      SELECT payment.id, org_id AS org, organizations.name AS org_name, payment.amount, reversal.kind,
        reversal.id AS reversal, foreign_amount AS detail
      FROM payment_reversals AS reversal JOIN payments AS payment ON payment.id = payment_id
      LEFT JOIN organizations ON organizations.id = org_id
      WHERE needs_amount AND payment.status = 'paid' ORDER BY payment.id DESC LIMIT ${maxPerKind}`,
    (row) => ({
      kind: "payment_reversal_amount",
      title: `The ${row.kind} ${row.reversal} of ${row.detail} is not charged yet`,
      detail: `Stripe states no USD amount. Enter it with: gateway payments reverse ${row.id} ${row.reversal} USD`,
      ...paymentLinkOf(row)
    })
  )

const readPaymentAlerts = (sql: SqlClient.SqlClient) =>
  Effect.map(Effect.all([readRefusedPayments(sql), readDisputes(sql), readForeignReversals(sql)]), (alerts) =>
    alerts.flat()
  )

const spendDays = 7
const stuckAfterMinutes = 45
const oldAfterMinutes = 120
/** The age from which a pending delivery raises an alert. By then it has failed four times: the fourth try starts after about six minutes. */
const failingAfterMinutes = 10
const failedWithinDays = 7
const maxPerKind = 20

const Owned = { org: Schema.String, orgName: Schema.String }
const ownerOf = ({ org, orgName }: { readonly org: string; readonly orgName: string }) => ({ org, org_name: orgName })

const Funds = Schema.Struct({ ...Owned, available: NanoUsdFromRow })

type Spend = ReadonlyMap<string, bigint>

/** Returns a cached function that reads how much each organization spent in the last week. */
export const spendReader = ({ report }: typeof Usage.Service) =>
  cacheForMinute((now) => {
    const until = floorTo(now, hourMillis) + hourMillis
    return Effect.map(
      report(OrganizationScope.all, { by: "org", since: until - spendDays * dayMillis, until }),
      ({ rows }): Spend =>
        new Map(rows.flatMap(({ charge, group }) => (group !== null && charge > 0n ? [[group, charge]] : [])))
    )
  })

/** Finds organizations that have less credit available than they spent in the last week. */
const readLowBalances = (sql: SqlClient.SqlClient, spendByOrg: Spend) =>
  Effect.gen(function* () {
    const funds = yield* rowsOf(Funds)(sql`
      SELECT id AS org, name AS org_name, balance - held AS available FROM organizations
      WHERE id = ANY (${[...spendByOrg.keys()]}::text[]) AND suspended_at IS NULL AND deleted_at IS NULL`)
    return funds
      .flatMap((organization) => {
        const spend = spendByOrg.get(organization.org) ?? 0n
        const days = (Math.max(0, Number(organization.available)) / Number(spend)) * spendDays
        return organization.available < spend ? [{ ...organization, days, daily: spend / BigInt(spendDays) }] : []
      })
      .toSorted((a, b) => a.days - b.days)
      .slice(0, maxPerKind)
      .map(
        ({ available, daily, days, ...owner }): Alert => ({
          kind: "low_balance",
          title: `${owner.orgName} has a low balance`,
          detail: `${days.toFixed(1)} days left: ${toUsdText(available)} USD available, ${toUsdText(daily)} USD spent a day.`,
          ...ownerOf(owner),
          href: `#/organizations/${owner.org}`
        })
      )
  })

const StuckVideo = Schema.Struct({ ...Owned, id: Schema.String, status: Schema.String, minutes: Schema.Number })

const readStuckVideos = (sql: SqlClient.SqlClient, now: Date) =>
  readRowAlerts(
    StuckVideo,
    sql`
      SELECT v.id, v.status, v.org_id AS org, o.name AS org_name,
        floor(extract(epoch FROM ${now}::timestamptz - v.created_at) / 60)::int AS minutes
      FROM videos v JOIN organizations o ON o.id = v.org_id
      WHERE v.status IN ('queued', 'in_progress')
        AND (v.created_at < ${now}::timestamptz - ${stuckAfterMinutes} * interval '1 minute' OR v.deadline < ${now}::timestamptz)
      ORDER BY v.created_at LIMIT ${maxPerKind}`,
    (video) => ({
      kind: "stuck_video",
      title: `The video ${video.id} is stuck`,
      detail: `It has been ${video.status} for ${pluralize(video.minutes, "minute")}.`,
      ...ownerOf(video),
      href: `#/videos/${video.id}`
    })
  )

const UndeliveredEvents = Schema.Struct({
  ...Owned,
  url: Schema.String,
  events: Schema.Number,
  failure: TextOrNull
})

interface UndeliveredQuery {
  readonly kind: "webhook_failing" | "webhook_failed"
  /** The end of a text such as "3 events failed". */
  readonly problem: string
  /** Selects and orders the deliveries, of which at most a thousand are read. */
  readonly condition: string
  readonly timeFilter: Statement.Fragment
}

const readUndelivered = (sql: SqlClient.SqlClient, { condition, kind, problem, timeFilter }: UndeliveredQuery) =>
  readRowAlerts(
    UndeliveredEvents,
    sql`
      SELECT d.org_id AS org, o.name AS org_name, d.url, count(*)::int AS events,
        (array_agg(d.failure ORDER BY d.id DESC))[1] AS failure
      FROM (SELECT * FROM webhook_deliveries WHERE ${sql.literal(condition)} LIMIT 1000) AS d
      JOIN organizations o ON o.id = d.org_id
      WHERE ${timeFilter} GROUP BY 1, 2, 3 ORDER BY max(d.id) DESC LIMIT ${maxPerKind}`,
    (row) => ({
      kind,
      title: `Webhooks of ${row.orgName} fail`,
      detail: `${pluralize(row.events, "event")} ${problem} for ${row.url}: ${row.failure ?? "unknown reason"}`,
      ...ownerOf(row),
      href: `#/webhooks?organization=${row.org}`
    })
  )

const readFailingWebhooks = (sql: SqlClient.SqlClient, now: Date) =>
  readUndelivered(sql, {
    kind: "webhook_failing",
    problem: `retried for more than ${failingAfterMinutes} minutes`,
    condition: "next_at IS NOT NULL AND tries > 0 ORDER BY next_at",
    timeFilter: sql`d.created_at < ${now}::timestamptz - ${failingAfterMinutes} * interval '1 minute'`
  })

const readFailedWebhooks = (sql: SqlClient.SqlClient, now: Date) =>
  readUndelivered(sql, {
    kind: "webhook_failed",
    problem: "failed after all tries",
    condition: "state = 'failed' ORDER BY id DESC",
    timeFilter: sql`d.created_at > ${now}::timestamptz - ${failedWithinDays} * interval '1 day'`
  })

const OldHold = Schema.Struct({ ...Owned, id: Schema.String, amount: NanoUsdFromRow, minutes: Schema.Number })

/** Excludes holds of videos, because a video may take this long. */
const readOldHolds = (sql: SqlClient.SqlClient, now: Date) =>
  readRowAlerts(
    OldHold,
    sql`
      SELECT h.id, h.org_id AS org, o.name AS org_name, h.amount,
        floor(extract(epoch FROM ${now}::timestamptz - h.created_at) / 60)::int AS minutes
      FROM all_holds h JOIN organizations o ON o.id = h.org_id
      WHERE h.state = 'open' AND NOT h.is_job
        AND h.created_at < ${now}::timestamptz - ${oldAfterMinutes} * interval '1 minute'
      ORDER BY h.created_at LIMIT ${maxPerKind}`,
    (hold) => ({
      kind: "old_hold",
      title: `A hold of ${hold.orgName} is still open`,
      detail: `${toUsdText(hold.amount)} USD have been held for ${pluralize(hold.minutes, "minute")}.`,
      ...ownerOf(hold),
      href: `#/holds?organization=${hold.org}`
    })
  )

const nameOf = ({ host, id, pid }: InstanceRecord) => (host === null ? id : `${host}:${pid}`)

const catalogAlertsOf = (instances: ReadonlyArray<InstanceRecord>): ReadonlyArray<Alert> => {
  const running = instances.filter(({ state }) => state === "running")
  const rejections = running.flatMap(
    (instance): ReadonlyArray<Alert> =>
      instance.problem === null
        ? []
        : [
            {
              kind: "catalog_problem",
              title: `${nameOf(instance)} rejected the catalog`,
              detail: instance.problem,
              href: "#/settings"
            }
          ]
  )
  const served = running.flatMap((instance) =>
    instance.fingerprint === null ? [] : [`${nameOf(instance)} ${instance.fingerprint}`]
  )
  const fingerprints = new Set(running.flatMap(({ fingerprint }) => fingerprint ?? []))
  if (fingerprints.size < 2) return rejections
  const title = "Instances serve different catalogs"
  return [...rejections, { kind: "catalog_problem", title, detail: served.join(", "), href: "#/settings" }]
}

const routeLink = "#/models?state=attention"

const circuitAlertsOf = (circuits: ReadonlyArray<Circuit>) =>
  circuits.flatMap(({ last_error, note, route, state }): ReadonlyArray<Alert> => {
    if (state === "half_open") return []
    return state === "open"
      ? [{ kind: "circuit", title: `${route} is not called`, detail: last_error ?? "It failed.", href: routeLink }]
      : [
          {
            kind: "route_disabled",
            title: `${route} is disabled`,
            detail: note ?? "There is no note.",
            href: routeLink
          }
        ]
  })

const DiscountRow = Schema.Struct({ ...Owned, percent: Schema.Number, organizations: Schema.Number })

/** Returns a cached function that reads an alert about discounts below the catalog's costs. Ignores losses of listed prices. */
export const discountAlertReader = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const catalog = yield* Catalog
  const readDiscounts = rowsOf(DiscountRow)(sql`
    SELECT discount_percent AS percent, count(*)::int AS organizations, min(id) AS org, min(name) AS org_name
    FROM organizations WHERE discount_percent > 0 AND deleted_at IS NULL GROUP BY 1 ORDER BY 1`)
  return cacheForMinute((now) =>
    Effect.map(readDiscounts, (discounts): ReadonlyArray<Alert> => {
      const states = catalog.current.saleStates.map((state) => saleStateAt(state, now))
      const losing = discounts.flatMap((row) => {
        const prices = discountLossesOf(states, [row.percent]).length
        return prices === 0 ? [] : [{ ...row, prices }]
      })
      // The largest discount has the losses of all smaller ones.
      const largest = losing.at(-1)
      if (largest === undefined) return []
      const { percent, prices, ...owner } = largest
      const count = losing.reduce((sum, { organizations }) => sum + organizations, 0)
      const whose = count === 1 ? `discount of ${owner.orgName}` : `discounts of ${count} organizations`
      return [
        {
          kind: "discount_below_cost",
          title: `${pluralize(prices, "price is", "prices are")} below cost at the ${whose}`,
          detail: `The ${count === 1 ? "" : "largest "}discount is ${percent} %. Lower it, or raise the prices.`,
          ...(count === 1 ? { ...ownerOf(owner), href: `#/organizations/${owner.org}` } : { href: "#/models" })
        }
      ]
    })
  )
})

interface AlertSources {
  readonly spent: Spend
  readonly instances: ReadonlyArray<InstanceRecord>
  readonly health: ReadonlyArray<RouteHealth>
  readonly disabled: ReadonlyArray<RouteControl>
  readonly circuits: ReadonlyArray<Circuit>
  readonly margins: ReadonlyArray<Alert>
  readonly traffic: Traffic
  readonly served: ServedRoutes
}

/** Alerts are not stored: each disappears with its cause. */
export const readAlerts = (sql: SqlClient.SqlClient, sources: AlertSources, now: number) => {
  const at = new Date(now)
  return Effect.map(
    Effect.all([
      readDownModels(sql, sources, now),
      readStuckVideos(sql, at),
      readOldHolds(sql, at),
      readLowBalances(sql, sources.spent),
      readFailingWebhooks(sql, at),
      readFailedWebhooks(sql, at),
      readPaymentAlerts(sql)
    ]),
    ([down, ...others]) => [
      ...down,
      ...trafficAlertsOf(sources.traffic, new Set(sources.disabled.map(({ id }) => id)), sources.served),
      ...circuitAlertsOf(sources.circuits),
      ...catalogAlertsOf(sources.instances),
      ...sources.margins,
      ...others.flat()
    ]
  )
}
