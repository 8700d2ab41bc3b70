import type { SqlClient } from "@effect/sql"
import { Array as Arr, Effect, Number as Num, Order, Schema } from "effect"
import { withoutControls } from "../../domain/Csv.ts"
import { pluralize } from "../../domain/Wording.ts"
import { inLogSpan, isError } from "../requests/RequestColumns.ts"
import { TextOrNull } from "../resources/ResourceRecord.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import type { Alert } from "./DashboardRecord.ts"
import { cacheForMinute } from "./Kpis.ts"

export const windowMinutes = 15
/** The fewest failures that show a failing model or route. */
const minFailures = 3
const maxModelRequests = 2_000

const windowStart = (now: number) => now - windowMinutes * 60_000

const inWindow = (sql: SqlClient.SqlClient, now: number) =>
  sql.and(inLogSpan(sql, { since: windowStart(now), until: now + 1 }))

export const modelLinkOf = (model: string): string => `#/models/${encodeURIComponent(model)}`

/** Error codes that show a failing model. A 503 of a busy or restarting gateway has no code, so it does not count. */
const failureCodes = ["upstream_error", "no_provider_available", "timeout", "internal_error", "stream_error"]

const FailingModel = Schema.Struct({ model: Schema.String, failed: Schema.Number })

/** Finds models whose recent requests all failed. Circuits miss this if the failures are too few, or of one customer. */
export const readFailingModels = (sql: SqlClient.SqlClient, now: number) =>
  Effect.map(
    rowsOf(FailingModel)(sql`
      SELECT model, count(*)::int AS failed FROM (
        SELECT model, status, coalesce(code = ANY (${failureCodes}::text[]), false) AS has_failed FROM request_log
        WHERE ${inWindow(sql, now)} ORDER BY id DESC LIMIT ${maxModelRequests}
      ) AS newest
      WHERE model IS NOT NULL AND (status < 400 OR has_failed)
      GROUP BY model HAVING count(*) >= ${minFailures} AND bool_and(has_failed)`),
    (rows) => new Map(rows.map(({ failed, model }) => [model, failed]))
  )

/** Bounds the time of the two statements below. */
const maxRequests = 20_000

const minErrors = 10
/** In percent of the requests, like `GatewayServerErrors` in `deploy/alerts.yaml`. */
const minErrorPercent = 5

const Outcome = Schema.Struct({
  isError: Schema.Boolean,
  status: Schema.Number,
  code: TextOrNull,
  model: TextOrNull,
  requests: Schema.Number
})
type Outcome = typeof Outcome.Type

/** Counts recent requests by outcome. Omits refusals and disconnects, which are the customers' own. */
const readOutcomes = (sql: SqlClient.SqlClient, now: number) =>
  rowsOf(Outcome)(sql`
    SELECT coalesce(${sql.literal(isError)}, false) AS is_error, status, code, model, count(*)::int AS requests
    FROM (
      SELECT status, code, model FROM request_log WHERE ${inWindow(sql, now)} ORDER BY id DESC LIMIT ${maxRequests}
    ) AS newest
    WHERE status < 400 OR status >= 500 GROUP BY 1, 2, 3, 4 ORDER BY requests DESC, model, status`)

const countOf = (outcomes: ReadonlyArray<Outcome>) => Num.sumAll(outcomes.map(({ requests }) => requests))

const errorAlertsOf = (outcomes: ReadonlyArray<Outcome>): ReadonlyArray<Alert> => {
  const errors = outcomes.filter(({ isError }) => isError)
  const [total, failed] = [countOf(outcomes), countOf(errors)]
  const [most] = errors
  if (most === undefined || failed < minErrors || failed * 100 < total * minErrorPercent) return []
  const cause = [most.status, most.code, ...(most.model === null ? [] : ["of", most.model])].filter(
    (part) => part !== null
  )
  return [
    {
      kind: "high_error_rate",
      title: `${Math.round((failed * 100) / total)} % of requests fail`,
      detail: `${failed} of the last ${total} requests within ${windowMinutes} minutes failed. Most frequent: ${cause.join(" ")} (${most.requests}).`,
      href: "#/requests?status=error&since=1h"
    }
  ]
}

/** Outcomes for which the route is to blame. A rejected request or a cancelled call says nothing about the route. */
const blamedOutcomes = ["account", "limit", "network", "retry", "timeout", "defect"]

const AttemptGroup = Schema.Struct({
  route: Schema.String,
  provider: Schema.String,
  model: TextOrNull,
  outcome: Schema.String,
  status: Schema.NullOr(Schema.Number),
  attempts: Schema.Number,
  detail: TextOrNull
})
type AttemptGroup = typeof AttemptGroup.Type

/**
 * Groups the recent attempts of each route by their outcome, with the newest detail of each group. Attempts of videos are
 * read from their jobs, because most follow after the request. A retry without status was never sent: the route does not
 * support that request. A route without a name is one that another version of the gateway wrote.
 */
const readAttempts = (sql: SqlClient.SqlClient, now: number) =>
  rowsOf(AttemptGroup)(sql`
    SELECT tried.route, tried.provider, min(model) AS model, tried.outcome, tried.status, count(*)::int AS attempts,
      (array_agg(tried.detail ORDER BY at DESC))[1] AS detail
    FROM (
      (SELECT at, model, attempts FROM request_log WHERE ${inWindow(sql, now)} AND surface <> 'video'
        ORDER BY id DESC LIMIT ${maxRequests})
      UNION ALL
      (SELECT created_at, model, attempts FROM videos
        WHERE created_at >= ${new Date(windowStart(now))}::timestamptz AND created_at <= ${new Date(now)}::timestamptz
        ORDER BY created_at DESC LIMIT ${maxRequests})
    ) AS newest, jsonb_to_recordset(attempts) AS tried (route text, provider text, outcome text, status int, detail text)
    WHERE tried.outcome = ANY (${["ok", ...blamedOutcomes]}::text[]) AND tried.route <> ''
      AND NOT (tried.outcome = 'retry' AND tried.status IS NULL)
    GROUP BY tried.route, tried.provider, tried.outcome, tried.status ORDER BY tried.route, attempts DESC`)

interface FailingRoute {
  readonly route: string
  readonly provider: string
  readonly model: string | null
  readonly attempts: number
  /** The attempts whose reason the alert shows. */
  readonly cause: AttemptGroup
}

/** A refused account fails every request, so one attempt is enough: its circuit admits few. */
const isFailing = (groups: Arr.NonEmptyReadonlyArray<AttemptGroup>, attempts: number): boolean =>
  groups.every(({ outcome }) => outcome !== "ok") &&
  (attempts >= minFailures || groups.some(({ outcome }) => outcome === "account"))

/** A refused account comes first, because it fails all later requests, and an operator can fix it. */
const byImportance = Order.combine(
  Order.mapInput(Order.boolean, ({ outcome }: AttemptGroup) => outcome === "account"),
  Order.mapInput(Order.number, ({ attempts }: AttemptGroup) => attempts)
)

const failingRoutesOf = (groups: ReadonlyArray<AttemptGroup>) =>
  Object.values(Arr.groupBy(groups, ({ route }) => route)).flatMap((ofRoute): ReadonlyArray<FailingRoute> => {
    const attempts = Num.sumAll(ofRoute.map((group) => group.attempts))
    if (!isFailing(ofRoute, attempts)) return []
    const [{ model, provider, route }] = ofRoute
    return [{ route, provider, model, attempts, cause: Arr.max(ofRoute, byImportance) }]
  })

/** Returns a cached function that reads the causes of alerts about all requests and about single routes. */
export const trafficReader = (sql: SqlClient.SqlClient) =>
  cacheForMinute((now) =>
    Effect.all({
      outcomes: readOutcomes(sql, now),
      failingRoutes: Effect.map(readAttempts(sql, now), failingRoutesOf)
    })
  )

export type Traffic = Effect.Effect.Success<ReturnType<ReturnType<typeof trafficReader>>>

const meanings: Readonly<Record<string, string>> = {
  account: "account refused",
  limit: "rate limited",
  network: "network error",
  retry: "provider error",
  timeout: "timeout",
  defect: "internal error"
}

/** Returns a text such as `401 authentication failed: invalid_api_key`. */
const reasonOf = ({ detail, outcome, status }: AttemptGroup): string => {
  const meaning = status === 401 ? "authentication failed" : (meanings[outcome] ?? outcome)
  const prefix = `${status ?? ""} `
  const text = detail?.startsWith(prefix) === true ? detail.slice(prefix.length) : (detail ?? "")
  // The text is the provider's. Characters that reverse its direction could disguise the advice after it.
  const suffix = text === "" ? "" : `: ${withoutControls(text)}`
  return `${status === null ? "" : prefix}${meaning}${suffix}`.replace(/\.$/, "")
}

/** What the alerts need of the catalog. */
export interface ServedRoutes {
  /** Returns the name of the environment variable with a provider's credential, if the catalog is known. */
  readonly credentialOf: (provider: string) => string | undefined
  /** Returns false if the catalog is known and lacks the route. */
  readonly has: (route: string) => boolean
}

const fixOf = (
  { cause: { outcome, status }, provider }: FailingRoute,
  credentialOf: ServedRoutes["credentialOf"]
): string => {
  if (outcome !== "account") return ""
  const credential = credentialOf(provider) ?? `the credential of ${provider}`
  return status === 401 ? ` Check ${credential}.` : ` Check ${credential}, and the account's balance and permissions.`
}

/**
 * Failover hides these failures from customers. Omits disabled routes, because an operator knows about them, and routes
 * that a new catalog has removed.
 */
export const trafficAlertsOf = (
  { failingRoutes, outcomes }: Traffic,
  disabledRoutes: ReadonlySet<string>,
  { credentialOf, has }: ServedRoutes
): ReadonlyArray<Alert> => [
  ...errorAlertsOf(outcomes),
  ...failingRoutes
    .filter(({ route }) => has(route) && !disabledRoutes.has(route))
    .map((failing): Alert => {
      const { attempts, cause, model, route } = failing
      const share = cause.attempts === attempts ? "" : `, ${cause.attempts} of them`
      return {
        kind: "route_failing",
        title: `Every attempt of ${route} fails`,
        detail: `${pluralize(attempts, "attempt")} within ${windowMinutes} minutes failed${share} with ${reasonOf(cause)}.${fixOf(failing, credentialOf)}`,
        href: model === null ? "#/models?state=attention" : modelLinkOf(model)
      }
    })
]
