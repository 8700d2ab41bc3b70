import { SqlClient } from "@effect/sql"
import { Cause, Clock, Effect, Layer, Option, Schema } from "effect"
import { Database } from "../database/Database.ts"
import { Embedded } from "../database/Embedded.ts"
import { Migrations } from "../database/Migrations.ts"
import { findObstacle, oldestTested } from "../database/Requirements.ts"
import { timeText } from "../domain/Csv.ts"
import { pluralize } from "../domain/Plural.ts"
import { explain } from "../ExitCode.ts"
import { type Settings } from "../Settings.ts"
import { administration } from "../services/admin/Administration.ts"
import { Now } from "../services/admin/now/Now.ts"
import { type Attention, type AttentionKind } from "../services/admin/now/Record.ts"
import { isAlive } from "../services/instance/InstanceState.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { Timings } from "../services/runtime/Timings.ts"
import { rowsOf } from "../services/sql/Statement.ts"
import type * as Output from "./Output.ts"

type State = "ok" | "warning" | "problem"

export type Finding = {
  readonly check: string
  readonly state: State
  readonly detail: string
}

/** `detail` of what is not ok says what to do. */
export const finding = (check: string, state: State, detail: string): Finding => ({ check, state, detail })

export const ok = (check: string, detail: string) => finding(check, "ok", detail)
export const warning = (check: string, detail: string) => finding(check, "warning", detail)
export const problem = (check: string, detail: string) => finding(check, "problem", detail)

/** The first of many. */
export const list = (words: ReadonlyArray<string>) =>
  words.length > 5 ? `${words.slice(0, 5).join(", ")}, …` : words.join(", ")

const count = (findings: ReadonlyArray<Finding>, state: State) => findings.filter((one) => one.state === state).length

export const report = (findings: ReadonlyArray<Finding>): Output.Output => {
  const [problems, warnings] = [count(findings, "problem"), count(findings, "warning")]
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.map(({ check, detail, state }) => `${state.padEnd(8)} ${check.padEnd(width)}  ${detail}`)
  return {
    document: { healthy: problems === 0, problems, warnings, data: findings },
    text: lines.join("\n"),
    failure: problems === 0 ? undefined : `The doctor found ${pluralize(problems, "problem")}.`
  }
}

/** Charges are added up an hour after they were made. */
const lateAfterHours = 3

const Waiting = Schema.Struct({ since: Schema.NullOr(Schema.DateFromSelf) })
const Oldest = Schema.Struct({ pid: Schema.Number, name: Schema.String, since: Schema.DateFromSelf })

/** Whether charges are added up for statements: every transaction that runs keeps those since its beginning from it. */
const checkStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [waiting] = yield* rowsOf(Waiting)(sql`
    SELECT min(at) AS since FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress)
      AND at < now() - ${lateAfterHours} * interval '1 hour'`)
  if (!waiting?.since) return ok("statements", "charges are added up")
  const late = `charges since ${timeText(waiting.since)} are not added up, which makes statements slow and their webhooks late`
  const [oldest] = yield* rowsOf(Oldest)(sql`
    SELECT pid, coalesce(nullif(application_name, ''), usename, 'unknown') AS name, xact_start AS since FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND xact_start < now() - interval '1 hour'
    ORDER BY xact_start LIMIT 1`)
  return warning(
    "statements",
    oldest === undefined
      ? `${late}: a gateway does that once a minute, look for "Charges could not be added up" in its log`
      : `${late}: a transaction of ${oldest.name} (pid ${oldest.pid}) has been open since ${timeText(oldest.since)}, end it or the backup that it belongs to`
  )
})

interface Check {
  readonly judge: (check: string, detail: string) => Finding
  readonly kinds: ReadonlyArray<AttentionKind>
  readonly fine: string
  /** What shows more. */
  readonly see: string
}

/** A customer who runs low is no fault of the gateway's. */
const checks: Readonly<Record<string, Check>> = {
  models: { judge: problem, kinds: ["model_down"], fine: "none is down", see: "gateway providers" },
  routes: {
    judge: warning,
    kinds: ["circuit", "route_disabled"],
    fine: "none is disabled, no circuit is open",
    see: "gateway providers"
  },
  instances: {
    judge: warning,
    kinds: ["catalog_problem"],
    fine: "all serve one catalog",
    see: "gateway catalog reload"
  },
  margins: {
    judge: warning,
    kinds: ["sold_below_cost", "cost_unknown"],
    fine: "nothing was sold below cost, or at an unknown one, within a day",
    see: "gateway usage --by model,route --since 1d"
  },
  costs: {
    judge: warning,
    kinds: ["cost_drift"],
    fine: "none differs from what providers stated within a day",
    see: "gateway usage --by route --since 1d --json"
  },
  videos: { judge: warning, kinds: ["stuck_video"], fine: "none is late", see: "gateway videos list" },
  payments: {
    judge: warning,
    kinds: ["payment_refused", "payment_disputed", "payment_reversal_amount"],
    fine: "all are credited, none is disputed, and no refund waits for its amount",
    see: "gateway payments list"
  },
  holds: { judge: warning, kinds: ["old_hold"], fine: "none is old", see: "gateway holds" },
  webhooks: {
    judge: warning,
    kinds: ["webhook_failing", "webhook_failed"],
    fine: "all are taken",
    see: "gateway webhooks list"
  }
}

const findingsOf = (attention: ReadonlyArray<Attention>): ReadonlyArray<Finding> =>
  Object.entries(checks).map(([check, { fine, judge, kinds, see }]) => {
    const found = attention.filter(({ kind }) => kinds.includes(kind))
    if (found.length === 0) return ok(check, fine)
    const said = list(found.map(({ detail, title }) => `${title} (${detail.replace(/\.$/, "")})`))
    return judge(check, `${said}. ${see} shows more`)
  })

/** What the console says that needs an operator. */
const checkAttention = Effect.map(
  Effect.flatMap(Now, ({ read }) => read),
  ({ attention }) => findingsOf(attention)
)

/** The pool and the connections beside it. */
const connectionsOfInstance = 11

/** More entries take longer to verify than an operator waits. */
const maxVerified = 1_000_000

const skewed = 2_000

const Server = Schema.Struct({
  version: Schema.String,
  major: Schema.Number,
  now: Schema.DateFromSelf,
  max: Schema.Number,
  used: Schema.Number
})

const Instances = Schema.Struct({ live: Schema.Number })
const Size = Schema.Struct({ entries: Schema.Number })

export const judgeVersion = ({ major, version }: Pick<typeof Server.Type, "major" | "version">, millis: number) => {
  const detail = `PostgreSQL ${version} answers in ${millis} ms`
  return major < oldestTested
    ? warning("database", `${detail}: it is tested with ${oldestTested} or newer, upgrade it`)
    : ok("database", detail)
}

const checkServer = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`SELECT 1`
  const before = yield* Clock.currentTimeMillis
  const [server] = yield* rowsOf(Server)(sql`
    SELECT current_setting('server_version') AS version,
      current_setting('server_version_num')::int / 10000 AS major, clock_timestamp() AS now,
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS max,
      (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int AS used`)
  const after = yield* Clock.currentTimeMillis
  if (server === undefined) return yield* Effect.dieMessage("the server did not answer")
  const skew = Math.round(server.now.getTime() - (before + after) / 2)
  const reached = judgeVersion(server, after - before)
  const clocks =
    Math.abs(skew) > skewed + (after - before)
      ? warning("clocks", `the database's clock is ${skew} ms from this machine's: synchronize both`)
      : ok("clocks", `the database's clock is ${skew} ms from this machine's`)
  return { server, findings: [reached, clocks] }
})

const checkConnections = Effect.fnUntraced(function* ({ max, used }: typeof Server.Type, { workers }: Settings) {
  const sql = yield* SqlClient.SqlClient
  const { deadAfter } = yield* Timings
  const [found] = yield* rowsOf(Instances)(sql`
    SELECT count(*)::int AS live FROM instances WHERE ${sql.literal(isAlive("instances", deadAfter))}`)
  const live = found?.live ?? 0
  const needed = Math.max(live, workers) * connectionsOfInstance
  const detail = `${used} of ${max} connections are in use; ${pluralize(live, "live instance")}, ${pluralize(workers, "worker")} here, need up to ${needed}`
  return needed > max
    ? warning("connections", `${detail}: raise max_connections, or lower WORKERS`)
    : ok("connections", detail)
})

const checkMigrations = Effect.fnUntraced(function* ({ databaseUrl }: Settings) {
  const { outstanding } = yield* Migrations
  const missing = yield* outstanding
  if (missing.length === 0) return ok("migrations", "up to date")
  const names = missing.join(", ")
  return databaseUrl === undefined
    ? warning("migrations", `pending, the next start applies them: ${names}`)
    : problem("migrations", `pending: ${names}. Run gateway migrate`)
})

const checkLedger = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [size] = yield* rowsOf(Size)(sql`
    SELECT greatest(reltuples, 0)::float8 AS entries FROM pg_class WHERE oid = 'ledger_entries'::regclass`)
  if ((size?.entries ?? 0) > maxVerified) {
    return ok("ledger", `about ${size?.entries} entries: not verified here, gateway ledger verify does`)
  }
  const { entries, holds, violations } = yield* Effect.flatMap(LedgerAdmin, ({ verify }) => verify)
  const [first] = violations
  return first === undefined
    ? ok(
        "ledger",
        `every invariant holds over ${pluralize(entries, "entry", "entries")} and ${pluralize(holds, "hold")}`
      )
    : problem(
        "ledger",
        `${pluralize(violations.length, "row breaks", "rows break")} it, such as "${first.invariant}": gateway ledger verify`
      )
})

const problemOf = (check: string, cause: Cause.Cause<unknown>) => problem(check, explain(Cause.squash(cause)))

const orProblem =
  (check: string) =>
  <E, R>(self: Effect.Effect<Finding, E, R>): Effect.Effect<Finding, never, R> =>
    Effect.catchAllCause(self, (cause) => Effect.succeed(problemOf(check, cause)))

const checkAll = Effect.fnUntraced(function* (settings: Settings) {
  const obstacle = yield* Effect.flatMap(Database, ({ connect }) => findObstacle(connect))
  if (obstacle !== undefined) return [problem("database", obstacle)]
  const { findings, server } = yield* checkServer
  const migrations = yield* orProblem("migrations")(checkMigrations(settings))
  if (migrations.state !== "ok") return [...findings, migrations]
  const connections = yield* orProblem("connections")(checkConnections(server, settings))
  const ledger = yield* orProblem("ledger")(Effect.provide(checkLedger, LedgerAdmin.layer))
  const statements = yield* orProblem("statements")(checkStatements)
  const attention = yield* checkAttention.pipe(
    Effect.provide(administration),
    Effect.catchAllCause((cause) => Effect.succeed([problemOf("routes", cause)]))
  )
  return [...findings, connections, migrations, ledger, statements, ...attention]
})

/** Makes no database, and applies no migration. */
export const checkDatabase = Effect.fn("Doctor.checkDatabase")(function* (settings: Settings) {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl === undefined && !Embedded.exists(dataDir)) {
    return [warning("database", `none yet: the first start makes one in ${dataDir}`)]
  }
  const options = { maxConnections: 2, queryTimeout: "1 minute" } as const
  const database = Migrations.layer.pipe(
    Layer.provideMerge(Database.layer({ url: Option.fromNullable(databaseUrl), dataDir, options }))
  )
  return yield* checkAll(settings).pipe(
    Effect.provide(database),
    Effect.catchAllCause((cause) => Effect.succeed([problemOf("database", cause)]))
  )
})
