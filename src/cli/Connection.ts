import path from "node:path"
import { Effect, Layer, Logger, LogLevel, Option } from "effect"
import { Database } from "../database/Database.ts"
import { Embedded } from "../database/Embedded.ts"
import { Migrations } from "../database/Migrations.ts"
import { pluralize } from "../domain/Plural.ts"
import * as Gateway from "../Gateway.ts"
import { hasPublicUrl, readSettings, type Settings, sandboxMode } from "../Settings.ts"
import { CurrentActor } from "../services/admin/Actor.ts"
import { administration } from "../services/admin/Administration.ts"
import { readCatalogFile } from "../services/catalog/Catalog.ts"
import { findRunning } from "../services/instance/RunningGateway.ts"
import { ProcessHolds } from "../services/ledger/OpenHolds.ts"
import { adaptersOf, Providers } from "../services/routing/Provider.ts"
import { ownFile } from "../services/runtime/System.ts"
import { textLogger } from "../services/telemetry/LogFormat.ts"
import { RequestLog } from "../services/telemetry/RequestLog.ts"
import { Webhooks } from "../services/webhooks/Webhooks.ts"
import { readEnvironment } from "../settings/Environment.ts"
import * as MediaStores from "../storage/MediaStores.ts"
import { CommandFailed } from "./CommandFailed.ts"

export const settings = Effect.flatMap(Effect.suspend(readEnvironment), readSettings)

/** The port of the running gateway may differ from the settings, so its own address wins. */
export const settingsOfRunning = Effect.gen(function* () {
  const own = yield* settings
  const running = yield* findRunning(own.dataDir)
  return Option.match(running, {
    onNone: () => ({ settings: own, running: undefined }),
    onSome: (running) => ({ settings: atAddress(own, running.publicUrl), running })
  })
})

/** Keeps a `PUBLIC_URL` or `MEDIA_PUBLIC_URL` that is set. */
const atAddress = (own: Settings, publicUrl: string): Settings => {
  if (hasPublicUrl(own)) return own
  const { media } = own
  const isOwnMedia = media.store === "disk" && media.publicUrl === `${own.publicUrl}/media`
  return { ...own, publicUrl, media: isOwnMedia ? { ...media, publicUrl: `${publicUrl}/media` } : media }
}

export const ownCatalog = Effect.map(settings, ({ catalogFile }) => catalogFile ?? ownFile("catalog.yaml"))

/** What a start with these settings and this catalog would read. */
export const readCatalogAt = Effect.fnUntraced(function* (file: string) {
  const environment = yield* readEnvironment()
  const settings = yield* readSettings(environment)
  const source = yield* readCatalogFile(file)
  const providers = yield* Effect.provide(Providers, Gateway.providers(settings))
  return { source, environment, sandbox: sandboxMode(settings), adapters: adaptersOf(providers) }
})

export const readCatalogOptions = Effect.flatMap(ownCatalog, readCatalogAt)

/** Log lines look like the warnings that commands print themselves. */
const logger = textLogger(({ logLevel }) => `gateway: ${logLevel === "WARN" ? "warning" : logLevel.toLowerCase()}: `)

/** Stdout is for the command's output. */
export const quiet = Layer.merge(
  Logger.replace(Logger.defaultLogger, Logger.withConsoleError(logger)),
  Logger.minimumLogLevel(LogLevel.Warning)
)

export const mediaStore = Layer.unwrapEffect(Effect.map(settings, ({ media }) => MediaStores.layer(media))).pipe(
  Layer.provideMerge(quiet)
)

const missingDatabase = (dataDir: string) => {
  const message = `There is no database in ${path.resolve(dataDir)}. Set DATA_DIR or DATABASE_URL, or run the command in the directory of your gateway. gateway serve creates a database.`
  return new CommandFailed({ message })
}

const databaseLayer = (isCreated: boolean) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const { databaseUrl, dataDir } = yield* settings
      const isMissing = databaseUrl === undefined && !Embedded.exists(dataDir)
      if (isMissing && !isCreated) return yield* missingDatabase(dataDir)
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

/** Fails if there is no database, because a new one would hide a wrong directory. Keeps an embedded one running. */
export const database = databaseLayer(false)

/** Like `database`, but creates an embedded one if there is none. */
export const newDatabase = databaseLayer(true)

/** Only the embedded database is migrated in passing; a server is the operator's decision. */
export const upToDate = Effect.gen(function* () {
  const { databaseUrl } = yield* settings
  const { migrate, pending } = yield* Migrations
  const { length } = databaseUrl === undefined ? [] : yield* pending
  if (databaseUrl === undefined) yield* migrate
  if (length === 0) return undefined
  const message = `The database lacks ${pluralize(length, "migration")}: run gateway migrate first.`
  return yield* new CommandFailed({ message })
})

const fetching = Layer.unwrapEffect(Effect.map(settings, Gateway.fetching))

const actor = Layer.unwrapEffect(Effect.map(settings, ({ gatewayActor }) => CurrentActor.commandLine(gatewayActor)))

const processHolds = Layer.unwrapEffect(
  Effect.map(settings, (settings) => Layer.provide(ProcessHolds.layerJournal, Gateway.refundJournal(settings)))
)

const paymentTerms = Layer.unwrapEffect(Effect.map(settings, Gateway.paymentTerms))

export const operator = Layer.mergeAll(
  actor,
  Layer.provide(administration, [processHolds, paymentTerms]),
  RequestLog.layer,
  Webhooks.layer.pipe(Layer.provide(fetching))
).pipe(Layer.provideMerge(Layer.effectDiscard(upToDate)), Layer.provideMerge(database))
