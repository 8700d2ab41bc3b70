import path from "node:path"
import { Clock, Effect, Layer, Logger, LogLevel, Option } from "effect"
import { Database } from "../database/Database.ts"
import { Embedded } from "../database/Embedded.ts"
import { Migrations } from "../database/Migrations.ts"
import { pluralize } from "../domain/Wording.ts"
import { CommandFailed } from "../ExitCode.ts"
import * as Gateway from "../Gateway.ts"
import { hasPublicUrl, readSettings, type Settings, sandboxMode } from "../Settings.ts"
import { CurrentActor } from "../services/admin/Actor.ts"
import { administration } from "../services/admin/AdminServices.ts"
import { readCatalogFile, readSaleStates } from "../services/catalog/Catalog.ts"
import { saleStateAt } from "../services/catalog/SaleState.ts"
import { findRunning } from "../services/instance/RunningGateway.ts"
import { ProcessHolds } from "../services/ledger/OpenHolds.ts"
import { adaptersOf, Providers } from "../services/routing/Provider.ts"
import { ownFile } from "../services/runtime/System.ts"
import { textLogger } from "../services/telemetry/LogFormat.ts"
import { RequestLog } from "../services/telemetry/RequestLog.ts"
import { Webhooks } from "../services/webhooks/Webhooks.ts"
import { readEnvironment } from "../settings/Environment.ts"
import * as MediaStores from "../storage/MediaStores.ts"

export const settings = Effect.flatMap(Effect.suspend(readEnvironment), readSettings)

/** Returns the settings, with the address of the running gateway if there is one, because it may listen on another port. */
export const settingsOfRunning = Effect.gen(function* () {
  const own = yield* settings
  const running = yield* findRunning(own.dataDir)
  return Option.match(running, {
    onNone: () => ({ settings: own, running: undefined }),
    onSome: (running) => ({ settings: atAddress(own, running.publicUrl), running })
  })
})

/**
 * Returns the settings with the running gateway's address in the default URLs. Keeps a `PUBLIC_URL` or `MEDIA_PUBLIC_URL`
 * that the operator has set.
 */
const atAddress = (own: Settings, publicUrl: string): Settings => {
  if (hasPublicUrl(own)) return own
  const { media } = own
  const isOwnMedia = media.store === "disk" && media.publicUrl === `${own.publicUrl}/media`
  return { ...own, publicUrl, media: isOwnMedia ? { ...media, publicUrl: `${publicUrl}/media` } : media }
}

export const ownCatalog = Effect.map(settings, ({ catalogFile }) => catalogFile ?? ownFile("catalog.yaml"))

/** Returns the input from which a gateway with these settings would make this catalog. */
export const readCatalogInput = Effect.fnUntraced(function* (file: string) {
  const environment = yield* readEnvironment()
  const settings = yield* readSettings(environment)
  const source = yield* readCatalogFile(file)
  const providers = yield* Effect.provide(Providers, Gateway.providers(settings))
  return { source, environment, sandbox: sandboxMode(settings), adapters: adaptersOf(providers) }
})

export const readCatalogOptions = Effect.flatMap(ownCatalog, readCatalogInput)

/** Returns the models of this machine's catalog with the prices of today. */
export const readSaleStatesNow = Effect.gen(function* () {
  const { all } = yield* Effect.flatMap(readCatalogOptions, readSaleStates)
  const now = yield* Clock.currentTimeMillis
  return all.map((state) => saleStateAt(state, now))
})

const logger = textLogger(({ logLevel }) => `gateway: ${logLevel === "WARN" ? "warning" : logLevel.toLowerCase()}: `)

/** Logs warnings to stderr, because stdout is for the command's output. */
export const quiet = Layer.merge(
  Logger.replace(Logger.defaultLogger, Logger.withConsoleError(logger)),
  Logger.minimumLogLevel(LogLevel.Warning)
)

export const mediaStore = Layer.unwrapEffect(Effect.map(settings, ({ media }) => MediaStores.layer(media))).pipe(
  Layer.provideMerge(quiet)
)

const missingDatabase = (dataDir: string) => {
  const message = `There is no database in ${path.resolve(dataDir)}. Set DATA_DIR or DATABASE_URL, or run the command in the directory of your gateway. To create a database, run gateway serve.`
  return new CommandFailed({ message })
}

const databaseLayer = (mayCreate: boolean) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { databaseUrl, dataDir } = yield* settings
      const isMissing = databaseUrl === undefined && !Embedded.exists(dataDir)
      if (isMissing && !mayCreate) return yield* missingDatabase(dataDir)
      return Migrations.layer.pipe(
        Layer.provideMerge(
          Database.layer({
            url: Option.fromNullable(databaseUrl),
            dataDir,
            options: { maxConnections: 2, queryTimeout: "1 hour" }
          })
        )
      )
    })
  ).pipe(Layer.provideMerge(quiet))

/** Fails if there is no database, because the command probably runs in a wrong directory. */
export const database = databaseLayer(false)

/** Like `database`, but creates an embedded database if there is none. */
export const newDatabase = databaseLayer(true)

/** Migrates an embedded database. Fails if an external one lacks migrations, because its operator decides when to migrate. */
export const upToDate = Effect.gen(function* () {
  const { databaseUrl } = yield* settings
  const { migrate, pending } = yield* Migrations
  const { length } = databaseUrl === undefined ? [] : yield* pending
  if (databaseUrl === undefined) yield* migrate
  if (length === 0) return undefined
  const message = `The database lacks ${pluralize(length, "migration")}. Run gateway migrate first.`
  return yield* new CommandFailed({ message })
})

const fetching = Layer.unwrapEffect(Effect.map(settings, Gateway.fetching))

const actor = Layer.unwrapEffect(Effect.map(settings, ({ gatewayActor }) => CurrentActor.commandLine(gatewayActor)))

const processHolds = Layer.unwrapEffect(
  Effect.map(settings, (settings) => Layer.provide(ProcessHolds.layerJournal, Gateway.refundJournal(settings)))
)

const sellingTerms = Layer.unwrapEffect(Effect.map(settings, Gateway.sellingTerms))

export const operator = Layer.mergeAll(
  actor,
  Layer.provide(administration, [processHolds, sellingTerms]),
  RequestLog.layer,
  Webhooks.layer.pipe(Layer.provide(fetching))
).pipe(Layer.provideMerge(Layer.effectDiscard(upToDate)), Layer.provideMerge(database))
