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
import { rereadSettings, type Settings, sandboxMode } from "./Settings.ts"
import { Auth } from "./services/access/Auth.ts"
import { RateLimiter } from "./services/access/RateLimiter.ts"
import { TokenLimiter } from "./services/access/TokenLimiter.ts"
import { administration } from "./services/admin/Administration.ts"
import { Operators } from "./services/admin/Operators.ts"
import { Catalog, type CatalogOptions, requireModels } from "./services/catalog/Catalog.ts"
import type { CatalogInvalid } from "./services/catalog/Problem.ts"
import { ChatCompletions } from "./services/chat/ChatCompletions.ts"
import { TokenCounter } from "./services/chat/TokenCounter.ts"
import { ControlFollower } from "./services/control/ControlFollower.ts"
import { Idempotency } from "./services/idempotency/Idempotency.ts"
import { ImageGenerations } from "./services/images/ImageGenerations.ts"
import { Instance } from "./services/instance/Instance.ts"
import { Ledger } from "./services/ledger/Ledger.ts"
import { ProcessHolds } from "./services/ledger/OpenHolds.ts"
import { Refunds } from "./services/ledger/Refunds.ts"
import { fillUsage } from "./services/ledger/UsageFilling.ts"
import { mediaWatch } from "./services/media/MediaStore.ts"
import { ReferenceImages } from "./services/media/ReferenceImages.ts"
import * as Metrics from "./services/metrics/Metrics.ts"
import { PaymentIntake } from "./services/payments/PaymentIntake.ts"
import { PaymentTerms } from "./services/payments/PaymentProvider.ts"
import { PaymentSync } from "./services/payments/PaymentSync.ts"
import { adaptersOf, Providers } from "./services/routing/Provider.ts"
import { ProviderRouter } from "./services/routing/ProviderRouter.ts"
import { RouteHealth } from "./services/routing/RouteHealth.ts"
import { InFlight } from "./services/runtime/InFlight.ts"
import { logFailure } from "./services/sql/Outage.ts"
import { statementNotices } from "./services/statements/StatementNotices.ts"
import { chargeTotals } from "./services/statements/Statements.ts"
import { CustomerUsage } from "./services/telemetry/CustomerUsage.ts"
import { DatabaseTotalsReader } from "./services/telemetry/DatabaseTotals.ts"
import { RequestLog } from "./services/telemetry/RequestLog.ts"
import { RequestReporter } from "./services/telemetry/RequestReporter.ts"
import { countUsage } from "./services/telemetry/Usage.ts"
import { VideoJobs } from "./services/videos/VideoJobs.ts"
import { refundedVideos } from "./services/videos/VideoViews.ts"
import * as WebhookDelivery from "./services/webhooks/WebhookDelivery.ts"
import { Webhooks } from "./services/webhooks/Webhooks.ts"
import * as DiskRefundJournal from "./storage/DiskRefundJournal.ts"
import * as MediaStores from "./storage/MediaStores.ts"
import * as Stripe from "./stripe/Stripe.ts"

interface GatewayOptions {
  readonly settings: Settings
  /** The file and the credentials, as they are now. */
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
      const fixed = { sandbox: sandboxMode(settings), adapters: adaptersOf(adapters) }
      return Catalog.layer(Effect.map(readCatalog, (read) => ({ ...read, ...fixed })))
    })
  )

const servable = Layer.effectDiscard(Effect.flatMap(Catalog, ({ current }) => requireModels(current)))

/** A bucket is the same for all instances, so traffic is better nowhere else; a disk usually is not. */
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
        Effect.orElseSucceed(() => "the database is out of reach")
      )
      return {
        unready: Effect.gen(function* () {
          if (inFlight.isStopping()) return "draining"
          if (unreadyReason() !== undefined || !instance.isAdmitting())
            return unreadyReason() ?? "the database is out of reach"
          if (!instance.isBeating()) return "the database finishes no writes"
          if (media.store === "disk" && !isWritable()) return unwritable()
          return yield* pending
        }),
        impaired: unwritable
      }
    })
  )

const filling = Layer.scopedDiscard(
  fillUsage.pipe(
    Effect.catchAllCause((cause) => logFailure("The totals of before could not be added up", cause)),
    Effect.forkScoped
  )
)

const counting = Layer.scopedDiscard(
  countUsage.pipe(
    Effect.catchAllCause((cause) => logFailure("New requests could not be added to the totals", cause)),
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
        ["Old rows of the request log", log.prune(logRetention)],
        ["Old idempotency keys", idempotency.prune(idempotencyRetention, images.forget)],
        ["Old sessions of operators", operators.prune],
        ["Old videos", videos.prune(logRetention)],
        ["Old deliveries of webhooks", webhooks.prune(logRetention)]
      ]
      yield* Effect.forEach(tasks, ([what, task]) =>
        Effect.catchAllCause(task, (cause) => logFailure(`${what} could not be removed`, cause))
      ).pipe(Effect.repeat(Schedule.spaced("1 hour")), Effect.forkScoped)
    })
  )

export const refundJournal = ({ dataDir }: Settings) =>
  DiskRefundJournal.layer({ directory: path.join(dataDir, "refunds"), former: path.join(dataDir, "voids") })

export const paymentTerms = ({ publicUrl, topUps }: Settings) => PaymentTerms.layer({ ...topUps, publicUrl })

/** Who takes payments, and on which terms; nobody where none is set up. */
export const payments = (settings: Settings) =>
  Layer.merge(settings.stripe === undefined ? Layer.empty : Stripe.layer(settings.stripe), paymentTerms(settings))

const paymentIntake = ({ stripe }: Settings) =>
  stripe === undefined ? Layer.empty : Layer.merge(PaymentIntake.layer(stripe), PaymentSync.hourly)

const publishedHealth = Layer.unwrapEffect(Effect.map(Instance, ({ id }) => RouteHealth.publisher(id)))

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
    filling,
    counting,
    chargeTotals,
    statementNotices,
    ControlFollower.layer,
    housekeeping(settings.logRetention),
    WebhookDelivery.layer
  ] as const
  return Layer.mergeAll(readiness(settings), paymentIntake(settings), ...background).pipe(
    Layer.provideMerge(Layer.merge(generations, Layer.provide(administration, ProcessHolds.layer))),
    Layer.provideMerge(payments(settings)),
    Layer.provideMerge(Layer.mergeAll(access, TokenCounter.layer, Webhooks.layer, routing, media)),
    Layer.provide(fetching(settings)),
    Layer.provideMerge(Layer.merge(Ledger.layer, Idempotency.layer)),
    Layer.provideMerge(TokenLimiter.layer),
    Layer.provideMerge(Layer.provide(Refunds.layer, [refundJournal(settings), refundedVideos])),
    // Rows of failed requests are written once their refunds are done, also at a stop.
    Layer.provideMerge(Layer.mergeAll(RequestLog.layer, RequestReporter.layer, DatabaseTotalsReader.layer)),
    Layer.provideMerge(Metrics.layer(packageJson)),
    Layer.provideMerge(Instance.layer),
    Layer.provideMerge(InFlight.layer)
  )
}

const catalogWithProviders = (options: GatewayOptions) =>
  servable.pipe(Layer.provideMerge(catalog(options)), Layer.provideMerge(providers(options.settings)))

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
    // Longer than it takes to find the database lost, which is logged once instead of for each statement.
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
    trustedProxies: settings.trustProxy,
    defaultRpm: settings.defaultRpm,
    metricsPublic: settings.metricsPublic,
    consolePublic: settings.consolePublic,
    membersPublic: settings.membersPublic,
    corsOrigins: settings.corsOrigins,
    takesPayments: settings.stripe !== undefined,
    chatBodyBytes: settings.maxBodyBytes.chat,
    mediaBodyBytes: settings.maxBodyBytes.media,
    mediaDirectory: settings.media.store === "disk" ? settings.media.directory : undefined,
    shutdownDelay: settings.shutdownDelay,
    shutdownTimeout: settings.shutdownTimeout
  }).pipe(
    Layer.provideMerge(services(options)),
    // A gateway that cannot serve stops before it changes anything in the database.
    Layer.provideMerge(migrated),
    Layer.provideMerge(catalogWithProviders(options)),
    Layer.provide(StartingServer.layer(settings))
  )
}
