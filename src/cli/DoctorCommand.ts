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
import { pluralize } from "../domain/Wording.ts"
import { explain } from "../ExitCode.ts"
import { type Settings, warnings } from "../Settings.ts"
import { administration } from "../services/admin/AdminServices.ts"
import { Catalog, type CatalogSnapshot } from "../services/catalog/Catalog.ts"
import type { CatalogInvalid } from "../services/catalog/CatalogSource.ts"
import { isAlive } from "../services/instance/Instance.ts"
import type { RunningGateway } from "../services/instance/RunningGateway.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { MediaStore } from "../services/media/MediaStore.ts"
import { Timings } from "../services/runtime/Timings.ts"
import { rowsOf } from "../services/sql/SqlStatement.ts"
import * as MediaStores from "../storage/MediaStores.ts"
import { quiet, readCatalogOptions, settingsOfRunning } from "./CliServices.ts"
import * as Builders from "./CommandBuilders.ts"
import {
  abbreviate,
  checkAlerts,
  checkDiscounts,
  checkPrices,
  type Finding,
  finding,
  ok,
  problem,
  report,
  warning
} from "./DoctorFindings.ts"
import { check } from "./prices/Check.ts"

/** Charges are normally aggregated after one hour, so charges that wait longer than this are late. */
const maxHours = 3

const Waiting = Schema.Struct({ since: Schema.NullOr(Schema.DateFromSelf) })
const Oldest = Schema.Struct({ pid: Schema.Number, name: Schema.String, since: Schema.DateFromSelf })

/** Reports charges that are not yet in the monthly totals. An open transaction delays all charges since its start. */
const checkStatements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [waiting] = yield* rowsOf(Waiting)(sql`
    SELECT min(at) AS since FROM ledger_entries WHERE at >= (SELECT added_until FROM monthly_charges_progress)
      AND at < now() - ${maxHours} * interval '1 hour'`)
  if (!waiting?.since) return ok("statements", "charges are up to date")
  const problemText = `charges since ${timeText(waiting.since)} are not aggregated yet. Statements are slow and their webhooks are late`
  const [oldest] = yield* rowsOf(Oldest)(sql`
    SELECT pid, coalesce(nullif(application_name, ''), usename, 'unknown') AS name, xact_start AS since FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND xact_start < now() - interval '1 hour'
    ORDER BY xact_start LIMIT 1`)
  return warning(
    "statements",
    oldest === undefined
      ? `${problemText}. Gateways aggregate once a minute: search their logs for "Charges could not be added up"`
      : `${problemText}. ${oldest.name} (pid ${oldest.pid}) has had a transaction open since ${timeText(oldest.since)}: end it, or the backup that runs it`
  )
})

/** Includes the connections outside of the pool. */
const connectionsOfInstance = 11

/** Verifying more entries takes too long for this command. */
const maxVerifiedEntries = 1_000_000

const maxSkewMillis = 2_000

const Server = Schema.Struct({
  version: Schema.String,
  major: Schema.Number,
  now: Schema.DateFromSelf,
  max: Schema.Number,
  used: Schema.Number
})

const Instances = Schema.Struct({ live: Schema.Number })
const Size = Schema.Struct({ entries: Schema.Number })

export const checkVersion = ({ major, version }: Pick<typeof Server.Type, "major" | "version">, millis: number) => {
  const detail = `PostgreSQL ${version} responds in ${millis} ms`
  return major < oldestTested
    ? warning("database", `${detail}. Upgrade it: only ${oldestTested} or newer is tested`)
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
  if (server === undefined) return yield* Effect.dieMessage("the database server sent no row")
  const skew = Math.round(server.now.getTime() - (before + after) / 2)
  const versionFinding = checkVersion(server, after - before)
  const clockFinding =
    Math.abs(skew) > maxSkewMillis + (after - before)
      ? warning("clocks", `the clocks of the database server and this machine differ by ${skew} ms. Synchronize them`)
      : ok("clocks", `the clocks of the database server and this machine differ by ${skew} ms`)
  return { server, findings: [versionFinding, clockFinding] }
})

const checkConnections = Effect.fnUntraced(function* ({ max, used }: typeof Server.Type, { workers }: Settings) {
  const sql = yield* SqlClient.SqlClient
  const { deadAfter } = yield* Timings
  const [found] = yield* rowsOf(Instances)(sql`
    SELECT count(*)::int AS live FROM instances WHERE ${sql.literal(isAlive("instances", deadAfter))}`)
  const live = found?.live ?? 0
  const needed = Math.max(live, workers) * connectionsOfInstance
  const detail = `${used} of ${max} connections are in use. ${pluralize(live, "live instance")} and ${pluralize(workers, "local worker")} need up to ${needed}`
  return needed > max
    ? warning("connections", `${detail}. Increase max_connections or decrease WORKERS`)
    : ok("connections", detail)
})

const checkMigrations = Effect.fnUntraced(function* ({ databaseUrl }: Settings) {
  const { outstanding } = yield* Migrations
  const missing = yield* outstanding
  if (missing.length === 0) return ok("migrations", "up to date")
  const names = missing.join(", ")
  return databaseUrl === undefined
    ? warning("migrations", `pending: ${names}. The next start applies them`)
    : problem("migrations", `pending: ${names}. Run gateway migrate`)
})

const checkLedger = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [size] = yield* rowsOf(Size)(sql`
    SELECT greatest(reltuples, 0)::float8 AS entries FROM pg_class WHERE oid = 'ledger_entries'::regclass`)
  if ((size?.entries ?? 0) > maxVerifiedEntries) {
    return ok("ledger", `about ${size?.entries} entries, too many to verify here. Run gateway ledger verify`)
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
        `${pluralize(violations.length, "row violates", "rows violate")} an invariant, such as "${first.invariant}". Run gateway ledger verify`
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
  const alerts = yield* checkAlerts.pipe(
    Effect.provide(administration),
    Effect.catchAllCause((cause) => Effect.succeed([problemOf("routes", cause)]))
  )
  const discounts = yield* orProblem("discounts")(Effect.provide(checkDiscounts, administration))
  return [...findings, connections, migrations, ledger, statements, discounts, ...alerts]
})

/** Changes nothing: does not create a database or apply migrations. */
const checkDatabase = Effect.fn("Doctor.checkDatabase")(function* (settings: Settings) {
  const { databaseUrl, dataDir } = settings
  if (databaseUrl === undefined && !Embedded.exists(dataDir)) {
    return [warning("database", `none yet. The first start creates one in ${dataDir}`)]
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
  const texts = warnings(settings)
  return texts.length === 0 ? [ok("settings", "valid")] : texts.map((text) => warning("settings", text))
}

const checkCatalog = ({ models, offModels: off, sandbox }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const summary = `${models.length} of ${pluralize(models.length + off.length, "model")} can be called`
  const sandboxFindings = sandbox
    ? [warning("catalog", "the sandbox serves mock responses. Set a provider's credential to call real models")]
    : []
  if (models.length === 0) return [problem("catalog", `${summary}. Set a provider's credential or SANDBOX=true`)]
  const names = abbreviate(off.map(({ id }) => id))
  return off.length === 0
    ? [ok("catalog", summary), ...sandboxFindings]
    : [
        warning("catalog", `${summary}; unavailable: ${names}. Run gateway catalog check for the reasons`),
        ...sandboxFindings
      ]
}

const checkCredentials = ({ providers }: CatalogSnapshot): ReadonlyArray<Finding> => {
  const needed = providers.flatMap(({ isReady, variable }) => (variable === undefined ? [] : [{ isReady, variable }]))
  const names = (isSet: boolean) =>
    [...new Set(needed.flatMap(({ isReady, variable }) => (isReady === isSet ? [variable] : [])))].join(", ")
  if (needed.length === 0) return [ok("credentials", "none is required")]
  const unset = names(false) === "" ? "" : `; not set: ${names(false)}`
  return names(true) === ""
    ? [warning("credentials", `none is set. Set at least one of ${names(false)}`)]
    : [ok("credentials", `set: ${names(true)}${unset}`)]
}

const catalogProblems = ({ problems }: CatalogInvalid): ReadonlyArray<Finding> =>
  problems.map(({ file, key, line, message }) => problem("catalog", `${file}:${line} ${key} ${message}`))

const gib = 1024 ** 3
const minFree = { warning: 5 * gib, problem: gib / 2 }

/** Checks the file system of the data directory, which may not exist yet. */
const checkDisk = ({ dataDir }: Settings): Effect.Effect<Finding> => {
  let directory = dataDir
  while (!existsSync(directory) && directory !== path.dirname(directory)) directory = path.dirname(directory)
  return Effect.tryPromise(() => statfs(directory)).pipe(
    Effect.map(({ bavail, blocks, bsize }) => {
      const free = bavail * bsize
      const detail = `${(free / gib).toFixed(1)} GiB of ${((blocks * bsize) / gib).toFixed(1)} GiB are free at ${dataDir}`
      if (free < minFree.problem) return problem("disk", `${detail}. Free some space, or move DATA_DIR`)
      return free < minFree.warning ? warning("disk", `${detail}. Free some space soon`) : ok("disk", detail)
    }),
    Effect.catchAll(({ error }) =>
      Effect.succeed(problem("disk", `the file system of ${dataDir} cannot be read: ${String(error)}`))
    )
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

const probeGateway = Effect.fnUntraced(function* (url: string) {
  const ready = Option.flatMap(yield* get(`${url}/readyz`), Schema.decodeOption(Health))
  const metrics = yield* get(`${url}/metrics`)
  const version = Option.map(metrics, (text) => /^gateway_build_info\{[^}]*version="([^"]+)"/m.exec(text)?.[1])
  return Option.map(ready, ({ reason, status }) => ({ status, reason, version: Option.getOrUndefined(version) }))
})

type Answer = Effect.Effect.Success<ReturnType<typeof probeGateway>>

const portReport = (address: string, answer: Answer, noAnswer: string) => {
  if (Option.isNone(answer)) return { isRunning: false, finding: problem("port", `${address} ${noAnswer}`) }
  const { reason, status, version } = answer.value
  const name = version === undefined ? "a gateway" : `gateway ${version}`
  const health = reason === undefined ? status : `${status}: ${reason}`
  const state = status === "ready" ? "ok" : "problem"
  return { isRunning: true, finding: finding("port", state, `${address}: ${name} responds, ${health}`) }
}

/** Probes the running gateway, or the port in the settings if none runs. */
const checkPort = Effect.fn("Doctor.checkPort")(function* (
  settings: Settings,
  running: Pick<RunningGateway, "url"> | undefined
) {
  if (running !== undefined) {
    const report = portReport(
      new URL(running.url).host,
      yield* probeGateway(running.url),
      "does not respond. Check the gateway's log"
    )
    return { ...report, isRunning: true }
  }
  const { host, port } = settings
  const code = port === 0 ? undefined : yield* tryPort(settings)
  const address = `${host}:${port}`
  if (code === undefined) return { isRunning: false, finding: ok("port", `${address} is free. No gateway runs here`) }
  if (code !== "EADDRINUSE") {
    return {
      isRunning: false,
      finding: problem("port", `the gateway cannot listen on ${address}: ${code}. Set HOST and PORT`)
    }
  }
  const noAnswer = "is in use by another program, or by a gateway that does not respond. Set PORT"
  return portReport(address, yield* probeGateway(`http://${reachableHost(host)}:${port}`), noAnswer)
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
      if (status === 200 && isSame(body)) return ok("media links", `${new URL(link).origin} serves stored files`)
      const advice = status >= 500 ? "Check that server" : "Make it publicly readable, or set MEDIA_PUBLIC_URL"
      return warning("media links", `${link} returns ${status}. ${advice}`)
    }),
    Effect.catchAll(() =>
      Effect.succeed(
        warning(
          "media links",
          `${new URL(link).origin} cannot be reached from here. Check PUBLIC_URL and MEDIA_PUBLIC_URL`
        )
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
        if (!Option.exists(read, isSame)) return [problem("media store", "a file was written but could not be read")]
        const stored = ok("media store", "a file was written, read and deleted")
        return isServed ? [stored, yield* checkLink(store.link(name))] : [stored]
      }),
    (name) => Effect.ignore(store.remove(name))
  )
})

/** Checks links to a disk store only while the gateway runs, because the gateway serves them. */
const checkMedia = Effect.fn("Doctor.checkMedia")(function* ({ media }: Settings, isRunning: boolean) {
  if (media.store === "disk" && !existsSync(media.directory)) {
    return [warning("media store", `none yet. The first start creates ${media.directory}`)]
  }
  return yield* checkStore(media.store === "s3" || isRunning).pipe(
    Effect.provide(MediaStores.layer(media)),
    Effect.catchAll(({ detail }) => Effect.succeed([problem("media store", detail)]))
  )
})

const checkOffer = Effect.flatMap(readCatalogOptions, (options) =>
  Effect.all({ snapshot: Catalog.make(options), report: check(options) })
).pipe(
  Effect.map(({ report, snapshot }) => [...checkCatalog(snapshot), checkPrices(report), ...checkCredentials(snapshot)]),
  Effect.catchTag("CatalogInvalid", (invalid) => Effect.succeed(catalogProblems(invalid)))
)

const examine = Effect.gen(function* () {
  const { running, settings } = yield* settingsOfRunning
  const port = yield* checkPort(settings, running)
  return [
    ...checkSettings(settings),
    ...(yield* checkOffer),
    port.finding,
    yield* checkDisk(settings),
    ...(yield* checkDatabase(settings)),
    ...(yield* checkMedia(settings, port.isRunning))
  ]
}).pipe(Effect.catchTag("SettingsInvalid", ({ message }) => Effect.succeed([problem("settings", message)])))

export const doctor = Builders.make(
  "doctor",
  "Check settings, catalog, database, media, routes and webhooks for problems.",
  {},
  () => Effect.map(examine, report)
).pipe(Command.provide(quiet))
