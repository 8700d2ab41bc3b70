import { existsSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { createServer } from "node:net"
import path from "node:path"
import { Command } from "@effect/cli"
import { SqlClient } from "@effect/sql"
import { Cause, Clock, Effect, Layer, Option, Schema } from "effect"
import { Database } from "../database/Database.ts"
import { Embedded } from "../database/Embedded.ts"
import { Migrations } from "../database/Migrations.ts"
import { findObstacle, oldestTested } from "../database/Requirements.ts"
import { timeText } from "../domain/Csv.ts"
import { pluralize } from "../domain/Plural.ts"
import { explain } from "../ExitCode.ts"
import { type Settings, warnings } from "../Settings.ts"
import { administration } from "../services/admin/Administration.ts"
import { Now } from "../services/admin/now/Now.ts"
import type { Attention, AttentionKind } from "../services/admin/now/Record.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import type { CatalogInvalid } from "../services/catalog/Problem.ts"
import { isAlive } from "../services/instance/InstanceState.ts"
import type { RunningGateway } from "../services/instance/RunningGateway.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import { Timings } from "../services/runtime/Timings.ts"
import { rowsOf } from "../services/sql/Statement.ts"
import * as MediaStores from "../storage/MediaStores.ts"
import * as Commands from "./Commands.ts"
import { quiet, readCatalogOptions, settingsOfRunning } from "./Connection.ts"
import type * as Output from "./Output.ts"
import { type CatalogReport, check } from "./prices/Check.ts"

type State = "ok" | "warning" | "problem"

type Finding = {
  readonly check: string
  readonly state: State
  readonly detail: string
}

/** `detail` of what is not ok says what to do. */
const finding = (check: string, state: State, detail: string): Finding => ({ check, state, detail })

const ok = (check: string, detail: string) => finding(check, "ok", detail)
const warning = (check: string, detail: string) => finding(check, "warning", detail)
const problem = (check: string, detail: string) => finding(check, "problem", detail)

/** The first of many. */
const list = (words: ReadonlyArray<string>) =>
  words.length > 5 ? `${words.slice(0, 5).join(", ")}, …` : words.join(", ")

const count = (findings: ReadonlyArray<Finding>, state: State) => findings.filter((one) => one.state === state).length

const report = (findings: ReadonlyArray<Finding>): Output.Output => {
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
const checkDatabase = Effect.fn("Doctor.checkDatabase")(function* (settings: Settings) {
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

const checkSettings = (settings: Settings): ReadonlyArray<Finding> => {
  const notes = warnings(settings)
  return notes.length === 0 ? [ok("settings", "readable")] : notes.map((note) => warning("settings", note))
}

const checkCatalog = ({ models, off, sandbox }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const sold = `${models.length} of ${pluralize(models.length + off.length, "model")} can be called`
  const served = sandbox ? [warning("catalog", "the sandbox serves made-up answers: set a provider's credential")] : []
  if (models.length === 0) return [problem("catalog", `${sold}: set a provider's credential, or SANDBOX=true`)]
  const names = list(off.map(({ id }) => id))
  return off.length === 0
    ? [ok("catalog", sold), ...served]
    : [warning("catalog", `${sold}; off: ${names}. gateway catalog check says why`), ...served]
}

const checkPrices = ({ losses, unitPrices }: Pick<CatalogReport, "losses" | "unitPrices">): Finding => {
  const found = [...unitPrices, ...losses]
  return found.length === 0
    ? ok("prices", "none is below a cost that the catalog names")
    : warning("prices", `${list(found)}. gateway catalog check shows margins`)
}

const checkCredentials = ({ providers }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const needed = providers.flatMap(({ ready, variable }) => (variable === undefined ? [] : [{ ready, variable }]))
  const names = (isSet: boolean) =>
    [...new Set(needed.flatMap(({ ready, variable }) => (ready === isSet ? [variable] : [])))].join(", ")
  if (needed.length === 0) return [ok("credentials", "none is needed")]
  const unset = names(false) === "" ? "" : `; not set: ${names(false)}`
  return names(true) === ""
    ? [warning("credentials", `none is set, of ${names(false)}`)]
    : [ok("credentials", `set: ${names(true)}${unset}`)]
}

const catalogProblems = ({ problems }: CatalogInvalid): ReadonlyArray<Finding> =>
  problems.map(({ file, key, line, message }) => problem("catalog", `${file}:${line} ${key} ${message}`))

const gib = 1024 ** 3
const scarce = { warning: 5 * gib, problem: gib / 2 }

/** Checks the file system that holds, or will hold, the data directory. */
const checkDisk = ({ dataDir }: Settings): Effect.Effect<Finding> => {
  let directory = dataDir
  while (!existsSync(directory) && directory !== path.dirname(directory)) directory = path.dirname(directory)
  return Effect.tryPromise(() => statfs(directory)).pipe(
    Effect.map(({ bavail, blocks, bsize }) => {
      const free = bavail * bsize
      const detail = `${(free / gib).toFixed(1)} GiB of ${((blocks * bsize) / gib).toFixed(1)} GiB are free at ${dataDir}`
      if (free < scarce.problem) return problem("disk", `${detail}: make room, or move DATA_DIR`)
      return free < scarce.warning ? warning("disk", `${detail}: soon too little`) : ok("disk", detail)
    }),
    Effect.catchAll(({ error }) => Effect.succeed(problem("disk", `${dataDir} cannot be looked at: ${String(error)}`)))
  )
}

const tryPort = ({ host, port }: Settings) =>
  Effect.async<string | undefined>((resume) => {
    const server = createServer()
    server.once("error", (error) => resume(Effect.succeed("code" in error ? String(error.code) : error.message)))
    server.listen(port, host, () => server.close(() => resume(Effect.succeed(undefined))))
  })

const Health = Schema.parseJson(Schema.Struct({ status: Schema.String, reason: Schema.optional(Schema.String) }))

const get = (url: string) =>
  Effect.tryPromise(async (signal) => (await fetch(url, { signal })).text()).pipe(
    Effect.timeout("3 seconds"),
    Effect.option
  )

const reachableHost = (host: string) => (host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host)

const askGateway = Effect.fnUntraced(function* (url: string) {
  const ready = Option.flatMap(yield* get(`${url}/readyz`), Schema.decodeOption(Health))
  const metrics = yield* get(`${url}/metrics`)
  const version = Option.map(metrics, (text) => /^gateway_build_info\{[^}]*version="([^"]+)"/m.exec(text)?.[1])
  return Option.map(ready, ({ reason, status }) => ({ status, reason, version: Option.getOrUndefined(version) }))
})

type Answer = Effect.Effect.Success<ReturnType<typeof askGateway>>

const portReport = (address: string, answer: Answer, silence: string) => {
  if (Option.isNone(answer)) return { isRunning: false, finding: problem("port", `${address} ${silence}`) }
  const { reason, status, version } = answer.value
  const which = version === undefined ? "a gateway" : `gateway ${version}`
  const says = reason === undefined ? status : `${status}: ${reason}`
  const state = status === "ready" ? "ok" : "problem"
  return { isRunning: true, finding: finding("port", state, `${address}: ${which} answers, ${says}`) }
}

/** Probes the running gateway, else the port in the settings. */
const checkPort = Effect.fn("Doctor.checkPort")(function* (
  settings: Settings,
  running: Pick<RunningGateway, "url"> | undefined
) {
  if (running !== undefined) {
    const report = portReport(
      new URL(running.url).host,
      yield* askGateway(running.url),
      "does not answer: check its log"
    )
    return { ...report, isRunning: true }
  }
  const { host, port } = settings
  const code = port === 0 ? undefined : yield* tryPort(settings)
  const address = `${host}:${port}`
  if (code === undefined) return { isRunning: false, finding: ok("port", `${address} is free: no gateway runs here`) }
  if (code !== "EADDRINUSE") {
    return {
      isRunning: false,
      finding: problem("port", `${address} cannot be listened on: ${code}; set HOST and PORT`)
    }
  }
  const silence = "is taken by another program, or by a gateway that does not answer; set PORT"
  return portReport(address, yield* askGateway(`http://${reachableHost(host)}:${port}`), silence)
})

const probe = new TextEncoder().encode("gateway doctor")

const isSame = (bytes: Uint8Array) => Buffer.compare(bytes, probe) === 0

const checkLink = (link: string): Effect.Effect<Finding> =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(link, { signal })
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) }
  }).pipe(
    Effect.timeout("5 seconds"),
    Effect.map(({ body, status }) => {
      if (status === 200 && isSame(body)) return ok("media links", `${new URL(link).origin} gives what was stored`)
      const advice = status >= 500 ? "it fails there" : "let the public read it, or set MEDIA_PUBLIC_URL"
      return warning("media links", `${link} answers ${status}: ${advice}`)
    }),
    Effect.catchAll(() =>
      Effect.succeed(
        warning("media links", `${new URL(link).origin} does not answer here: see PUBLIC_URL, MEDIA_PUBLIC_URL`)
      )
    )
  )

const checkStore = Effect.fnUntraced(function* (isServed: boolean) {
  const store = yield* MediaStore
  return yield* Effect.acquireUseRelease(
    store.put({ type: "image/png", visibility: "public", body: probe }),
    (name) =>
      Effect.gen(function* () {
        const read = yield* store.read(name)
        if (!Option.exists(read, isSame)) return [problem("media store", "what was written cannot be read back")]
        const stored = ok("media store", "a file was written, read and deleted")
        return isServed ? [stored, yield* checkLink(store.link(name))] : [stored]
      }),
    (name) => Effect.ignore(store.remove(name))
  )
})

/** A disk's links are the gateway's own: without one running they lead nowhere. */
const checkMedia = Effect.fn("Doctor.checkMedia")(function* ({ media }: Settings, isRunning: boolean) {
  if (media.store === "disk" && !existsSync(media.directory)) {
    return [warning("media store", `none yet: the first start makes ${media.directory}`)]
  }
  return yield* checkStore(media.store === "s3" || isRunning).pipe(
    Effect.provide(MediaStores.layer(media)),
    Effect.catchAll(({ detail }) => Effect.succeed([problem("media store", detail)]))
  )
})

const offer = Effect.flatMap(readCatalogOptions, (options) =>
  Effect.all({ snapshot: Catalog.make(options), report: check(options) })
).pipe(
  Effect.map(({ report, snapshot }) => [...checkCatalog(snapshot), checkPrices(report), ...checkCredentials(snapshot)]),
  Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(catalogProblems(invalid)))
)

const examine = Effect.gen(function* () {
  const { running, settings: read } = yield* settingsOfRunning
  const port = yield* checkPort(read, running)
  return [
    ...checkSettings(read),
    ...(yield* offer),
    port.finding,
    yield* checkDisk(read),
    ...(yield* checkDatabase(read)),
    ...(yield* checkMedia(read, port.isRunning))
  ]
}).pipe(Effect.catchTag("SettingsInvalid", ({ message }) => Effect.succeed([problem("settings", message)])))

export const doctor = Commands.make("doctor", "Find problems, from the settings to routes and webhooks.", {}, () =>
  Effect.map(examine, report)
).pipe(Command.provide(quiet))
