import path from "node:path"
import { Duration, Effect, Layer, Option, Schedule } from "effect"
import packageJson from "../package.json" with { type: "json" }
import { Database } from "./database/Database.ts"
import { Migrations } from "./database/Migrations.ts"
import * as SafeFetcher from "./fetching/SafeFetcher.ts"
import * as Server from "./http/server/Server.ts"
import { StartingServer } from "./http/server/StartingServer.ts"
import { Readiness } from "./http/system/SystemHandlers.ts"
import { Upstream } from "./providers/client/Upstream.ts"
import * as Registry from "./providers/Registry.ts"
import { hasPublicUrl, rereadSettings, type Settings, sandboxMode } from "./Settings.ts"
import { Auth } from "./services/access/Auth.ts"
import { RateLimiter, TokenWindows } from "./services/access/RateLimiter.ts"
import { administration } from "./services/admin/AdminServices.ts"
import { Operators } from "./services/admin/Operators.ts"
import { Catalog, type CatalogOptions, requireModels } from "./services/catalog/Catalog.ts"
import type { CatalogInvalid } from "./services/catalog/CatalogSource.ts"
import { ChatCompletions } from "./services/chat/ChatCompletions.ts"
import { TokenCounter } from "./services/chat/TokenCounter.ts"
import { ControlFollower } from "./services/control/ControlFollower.ts"
import { Idempotency } from "./services/idempotency/Idempotency.ts"
import { ImageGenerations } from "./services/images/ImageGenerations.ts"
import { Instance } from "./services/instance/Instance.ts"
import { Ledger } from "./services/ledger/Ledger.ts"
import { fillUsage } from "./services/ledger/LedgerAdmin.ts"
import { ProcessHolds } from "./services/ledger/OpenHolds.ts"
import { Refunds } from "./services/ledger/Refunds.ts"
import { mediaWatch } from "./services/media/MediaStore.ts"
import { ReferenceImages } from "./services/media/ReferenceImages.ts"
import * as Metrics from "./services/metrics/Metrics.ts"
import { PaymentTerms } from "./services/payments/PaymentProvider.ts"
import { PaymentSync } from "./services/payments/PaymentSync.ts"
import { adaptersOf, Providers } from "./services/routing/Provider.ts"
import { ProviderRouter } from "./services/routing/ProviderRouter.ts"
import { PublishedHealth } from "./services/routing/PublishedHealth.ts"
import { InFlight } from "./services/runtime/InFlight.ts"
import { logFailure } from "./services/sql/Outage.ts"
import { DocumentSeller } from "./services/statements/Seller.ts"
import { chargeTotals, statementNotices } from "./services/statements/Statements.ts"
import { CustomerUsage } from "./services/telemetry/CustomerUsage.ts"
import { DatabaseTotalsReader } from "./services/telemetry/DatabaseTotals.ts"
import { RequestReporter } from "./services/telemetry/RequestLines.ts"
import { RequestLog } from "./services/telemetry/RequestLog.ts"
import { countUsage } from "./services/telemetry/Usage.ts"
import { VideoJobs } from "./services/videos/VideoJobs.ts"
import { refundedVideos } from "./services/videos/VideoViews.ts"
import * as WebhookDelivery from "./services/webhooks/WebhookDelivery.ts"
import { Webhooks } from "./services/webhooks/Webhooks.ts"
import * as DiskRefundJournal from "./storage/DiskRefundJournal.ts"
import * as MediaStores from "./storage/MediaStores.ts"
import * as StripePayments from "./stripe/StripePayments.ts"
import * as StripeWebhook from "./stripe/StripeWebhook.ts"

interface GatewayOptions {
  readonly settings: Settings
  /** Reads the catalog file and the credentials, at the start and at each reload. */
  readonly readCatalog: Effect.Effect<Pick<CatalogOptions, "source" | "environment">, CatalogInvalid>
}

export const fetching = ({ connectTimeout, fetchAllow, resultFetchAllow }: Settings) =>
  SafeFetcher.layer({
    fetchAllow,
    resultFetchAllow,
    connectTimeoutSeconds: Duration.toSeconds(connectTimeout)
  })

export const providers = (settings: Settings) =>
  Registry.layer.pipe(
    Layer.provide(TokenCounter.layer),
    Layer.provide(fetching(settings)),
    Layer.provide(
      Upstream.layer({
        connectTimeoutSeconds: Duration.toSeconds(settings.connectTimeout),
        idleTimeoutSeconds: Duration.toSeconds(settings.idleTimeout)
      })
    )
  )

const catalog = ({ readCatalog, settings }: GatewayOptions) =>
  Layer.unwrapEffect(
    Effect.map(Providers, (adapters) => {
      const constants = { sandbox: sandboxMode(settings), adapters: adaptersOf(adapters) }
      return Catalog.layer(Effect.map(readCatalog, (read) => ({ ...read, ...constants })))
    })
  )

const catalogCheck = Layer.effectDiscard(Effect.flatMap(Catalog, ({ current }) => requireModels(current)))

/**
 * Makes the instance unready if the media disk is not writable. An unwritable bucket does not, because all instances share
 * it.
 */
const readiness = ({ media }: Settings) =>
  Layer.scoped(
    Readiness,
    Effect.gen(function* () {
      const isWritable = yield* mediaWatch
      const unwritable = () => (isWritable() ? undefined : "the media store cannot be written")
      const inFlight = yield* InFlight
      const instance = yield* Instance
      const migrations = yield* Migrations
      const { unreadyReason } = yield* Database
      const pending = migrations.pending.pipe(
        Effect.map((names) => (names.length === 0 ? undefined : "migrations are pending")),
        Effect.interruptible,
        Effect.timeout("2 seconds"),
        Effect.orElseSucceed(() => "the database is unreachable")
      )
      return {
        unreadyReason: Effect.gen(function* () {
          if (inFlight.isStopping()) return "draining"
          if (unreadyReason() !== undefined || !instance.isAdmitting())
            return unreadyReason() ?? "the database is unreachable"
          if (!instance.isBeating()) return "the database finishes no writes"
          if (media.store === "disk" && !isWritable()) return unwritable()
          return yield* pending
        }),
        impairedReason: unwritable
      }
    })
  )

const usageBackfill = Layer.scopedDiscard(
  fillUsage.pipe(
    Effect.catchAllCause((cause) => logFailure("Past usage totals could not be computed", cause)),
    Effect.forkScoped
  )
)

const usageTotals = Layer.scopedDiscard(
  countUsage.pipe(
    Effect.catchAllCause((cause) => logFailure("New requests could not be added to the usage totals", cause)),
    Effect.repeat(Schedule.spaced("1 second")),
    Effect.forkScoped
  )
)

const idempotencyRetention = Duration.hours(24)

/** Deletes expired rows every hour. */
const housekeeping = (logRetention: Duration.Duration) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const log = yield* RequestLog
      const idempotency = yield* Idempotency
      const images = yield* ImageGenerations
      const videos = yield* VideoJobs
      const webhooks = yield* Webhooks
      const operators = yield* Operators
      const tasks: ReadonlyArray<readonly [string, Effect.Effect<unknown>]> = [
        ["Old request log rows", log.prune(logRetention)],
        ["Old idempotency keys", idempotency.prune(idempotencyRetention, images.forget)],
        ["Old operator sessions", operators.prune],
        ["Old videos", videos.prune(logRetention)],
        ["Old webhook deliveries", webhooks.prune(logRetention)]
      ]
      yield* Effect.forEach(tasks, ([name, task]) =>
        Effect.catchAllCause(task, (cause) => logFailure(`${name} could not be deleted`, cause))
      ).pipe(Effect.repeat(Schedule.spaced("1 hour")), Effect.forkScoped)
    })
  )

export const refundJournal = ({ dataDir }: Settings) =>
  DiskRefundJournal.layer({ directory: path.join(dataDir, "refunds"), legacyDirectory: path.join(dataDir, "voids") })

/** Provides the operator's settings of payments and documents. */
export const sellingTerms = ({ publicUrl, seller, topUps }: Settings) =>
  Layer.merge(PaymentTerms.layer({ ...topUps, publicUrl }), DocumentSeller.layer(seller))

/** Provides the selling terms, and the payment provider if one is configured. */
export const payments = (settings: Settings) =>
  Layer.merge(
    settings.stripe === undefined ? Layer.empty : StripePayments.layer(settings.stripe),
    sellingTerms(settings)
  )

/** Keeps payments up to date with Stripe's events and, hourly, with its lists. */
const paymentUpdates = ({ stripe }: Settings) =>
  stripe === undefined ? Layer.empty : Layer.merge(StripeWebhook.layer(stripe), PaymentSync.hourly)

const publishedHealth = Layer.unwrapEffect(Effect.map(Instance, ({ id }) => PublishedHealth.publisher(id)))

const access = Layer.mergeAll(Auth.layer, RateLimiter.layer)

const rereadMedia = Effect.map(rereadSettings, ({ media }) => media)

const services = ({ settings }: GatewayOptions) => {
  const routing = ProviderRouter.layer({
    requestTimeoutSeconds: Duration.toSeconds(settings.requestTimeout),
    firstByteTimeoutSeconds: Duration.toSeconds(settings.firstByteTimeout),
    streamTimeoutSeconds: Duration.toSeconds(settings.streamTimeout)
  })
  const generations = Layer.mergeAll(
    ChatCompletions.layer,
    ImageGenerations.layer,
    VideoJobs.layer({ timeout: settings.videoTimeout }),
    CustomerUsage.layer
  )
  const media = Layer.provideMerge(ReferenceImages.layer, MediaStores.layer(settings.media, rereadMedia))
  const background = [
    publishedHealth,
    usageBackfill,
    usageTotals,
    chargeTotals,
    statementNotices,
    ControlFollower.layer,
    housekeeping(settings.logRetention),
    WebhookDelivery.layer
  ] as const
  return Layer.mergeAll(readiness(settings), paymentUpdates(settings), ...background).pipe(
    Layer.provideMerge(Layer.merge(generations, Layer.provide(administration, ProcessHolds.layer))),
    Layer.provideMerge(payments(settings)),
    Layer.provideMerge(Layer.mergeAll(access, TokenCounter.layer, Webhooks.layer, routing, media)),
    Layer.provide(fetching(settings)),
    Layer.provideMerge(Layer.merge(Ledger.layer, Idempotency.layer)),
    Layer.provideMerge(TokenWindows.layer),
    Layer.provideMerge(Layer.provide(Refunds.layer, [refundJournal(settings), refundedVideos])),
    // Below the services that refund, because the log rows of failed requests are written after their refunds, even at
    // shutdown.
    Layer.provideMerge(Layer.mergeAll(RequestLog.layer, RequestReporter.layer, DatabaseTotalsReader.layer)),
    Layer.provideMerge(Metrics.layer(packageJson)),
    Layer.provideMerge(Instance.layer),
    Layer.provideMerge(InFlight.layer)
  )
}

const catalogWithProviders = (options: GatewayOptions) =>
  catalogCheck.pipe(Layer.provideMerge(catalog(options)), Layer.provideMerge(providers(options.settings)))

const migrated = Layer.effectDiscard(
  Effect.gen(function* () {
    const { migrate, outstanding } = yield* Migrations
    if ((yield* outstanding).length > 0) yield* (yield* StartingServer).listen
    const { summary } = yield* migrate
    if (summary !== undefined) yield* Effect.logInfo(summary)
  })
).pipe(Layer.provideMerge(Migrations.layer))

export const database = ({ dataDir, databaseUrl }: Settings) =>
  Database.layer({
    url: Option.fromNullable(databaseUrl),
    dataDir,
    // Longer than the watch needs to detect an outage, so an outage is logged once and not for each statement.
    options: {
      queryTimeout: "4.25 seconds",
      isWatched: true,
      rereadUrl: Effect.map(rereadSettings, (settings) => settings.databaseUrl)
    }
  })

export const layer = (options: GatewayOptions) => {
  const { settings } = options
  return Server.layer({
    host: settings.host,
    port: settings.port,
    publicUrl: settings.publicUrl,
    hasPublicUrl: hasPublicUrl(settings),
    mediaPublicUrl: settings.media.publicUrl,
    trustedProxies: settings.trustProxy,
    defaultRpm: settings.defaultRpm,
    areMetricsPublic: settings.areMetricsPublic,
    isConsolePublic: settings.isConsolePublic,
    areMembersPublic: settings.areMembersPublic,
    corsOrigins: settings.corsOrigins,
    hasPayments: settings.stripe !== undefined,
    chatBodyBytes: settings.maxBodyBytes.chat,
    mediaBodyBytes: settings.maxBodyBytes.media,
    mediaDirectory: settings.media.store === "disk" ? settings.media.directory : undefined,
    shutdownDelay: settings.shutdownDelay,
    shutdownTimeout: settings.shutdownTimeout
  }).pipe(
    Layer.provideMerge(services(options)),
    // The catalog is read before the database is migrated, because an invalid one must stop the gateway first.
    Layer.provideMerge(migrated),
    Layer.provideMerge(catalogWithProviders(options)),
    Layer.provide(StartingServer.layer(settings))
  )
}
