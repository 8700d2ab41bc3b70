import { HttpServer } from "@effect/platform"
import { Context, Duration, Effect, Layer } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import type { OrgId, Role } from "../../src/domain/Organization.ts"
import * as Server from "../../src/http/server/Server.ts"
import { Readiness } from "../../src/http/system/SystemHandlers.ts"
import { Auth } from "../../src/services/access/Auth.ts"
import { RateLimiter, TokenWindows } from "../../src/services/access/RateLimiter.ts"
import { Catalog } from "../../src/services/catalog/Catalog.ts"
import { ChatCompletions } from "../../src/services/chat/ChatCompletions.ts"
import { Idempotency } from "../../src/services/idempotency/Idempotency.ts"
import {
  type ImageFailure,
  ImageGenerations,
  type ImageResult,
  type ImageTask
} from "../../src/services/images/ImageGenerations.ts"
import { Instance } from "../../src/services/instance/Instance.ts"
import { Ledger } from "../../src/services/ledger/Ledger.ts"
import { Refunds } from "../../src/services/ledger/Refunds.ts"
import { ProviderRouter } from "../../src/services/routing/ProviderRouter.ts"
import { InFlight } from "../../src/services/runtime/InFlight.ts"
import { CustomerUsage } from "../../src/services/telemetry/CustomerUsage.ts"
import { DatabaseTotalsReader } from "../../src/services/telemetry/DatabaseTotals.ts"
import { RequestReporter } from "../../src/services/telemetry/RequestLines.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { refundedVideos } from "../../src/services/videos/VideoViews.ts"
import { Webhooks } from "../../src/services/webhooks/Webhooks.ts"
import { MediaStoreFake } from "../fakes/MediaStoreFake.ts"
import * as RefundJournalFake from "../fakes/RefundJournalFake.ts"
import { VideoJobsFake } from "../fakes/VideoJobsFake.ts"
import { fetcherFor } from "../fetching/ForeignServer.ts"
import { operator } from "../harness/client/Account.ts"
import { adminAt, hire } from "../harness/client/AdminClient.ts"
import { bearer, callAt, postTo, type Sent } from "../harness/client/HttpCalls.ts"
import * as Postgres from "../harness/database/Postgres.ts"
import { keys, options, small } from "../harness/fixtures/Catalogs.ts"

/** Beside `draw`, which edits and has 1K and 4K, and `film`, which may start from a frame and lasts 4, 6 or 8 seconds. `dear` is off. */
const catalog = `${small}
  - id: plain
    surface: image
    pricing: {per_image_usd: 0.04}
    routes: [{provider: clips, model: v/plain}]
  - id: framed
    surface: video
    pricing: {per_video_usd: 0.5}
    seconds: {allowed: [5, 10], default: 5}
    reference_image: required
    routes: [{provider: clips, model: v/framed, image_model: v/framed}]
  - id: bare
    surface: video
    pricing: {per_second_usd: 0.05}
    seconds: {allowed: [6], default: 6}
    reference_image: none
    routes: [{provider: clips, model: v/bare, cost: {per_second_usd: 0.04}}]
  - id: made-up
    surface: video
    pricing: {per_second_usd: 0.05}
    seconds: {allowed: [6], default: 6}
    reference_image: optional
    routes: [{provider: dreams, model: v/any, image_model: v/any}]
  - id: dear
    surface: image
    pricing: {per_image_usd: 0.04}
    routes: [{provider: absent, model: v/dear, preference: 2, weight: 3, cost: {per_image_usd: 0.05}}]
`.replace(
  "families:",
  "  dreams: {adapter: sandbox}\n  absent: {adapter: fal-queue, base_url: https://absent.test, credential: ABSENT_KEY}\nfamilies:"
)

export const mediaBodyBytes = 200_000

export const generations = "/v1/images/generations"
export const edits = "/v1/images/edits"
export const videos = "/v1/videos"

export const drawn: ImageResult = {
  created: 1_700_000_000,
  image: { url: "https://media.test/a.png" },
  size: "1536x1024",
  revisedPrompt: undefined,
  sandbox: false,
  replayed: false,
  charge: NanoUsd(40_000_000n)
}

interface Images {
  /** Every job so far, oldest first. */
  readonly jobs: ReadonlyArray<ImageTask>
  /** What the next job ends with; after it all succeed again. */
  readonly script: (outcome: Effect.Effect<ImageResult, ImageFailure>) => void
}

/** The server's address without `/v1`, and what its handlers made of requests. */
export class MediaServer extends Context.Tag("test/MediaServer")<
  MediaServer,
  { readonly url: string; readonly images: Images; readonly videos: VideoJobsFake }
>() {}

const serverWith = ({ areMembersPublic }: Access) =>
  Server.layer({
    host: "127.0.0.1",
    port: 0,
    publicUrl: "http://gateway.test",
    mediaPublicUrl: "http://gateway.test/media",
    trustedProxies: 0,
    defaultRpm: 600,
    areMetricsPublic: false,
    isConsolePublic: false,
    areMembersPublic,
    hasPayments: true,
    corsOrigins: [],
    chatBodyBytes: 1000,
    mediaBodyBytes,
    shutdownDelay: Duration.zero,
    shutdownTimeout: Duration.seconds(1)
  })

interface Access {
  readonly areMembersPublic: boolean
}

/** A real server over a real database, where nothing is generated. */
export const layerWith = (access: Access) =>
  Layer.unwrapEffect(
    Effect.sync(() => {
      const jobs: Array<ImageTask> = []
      const outcomes: Array<Effect.Effect<ImageResult, ImageFailure>> = []
      const fake = new VideoJobsFake()
      const images = Layer.mock(ImageGenerations, {
        replay: () => Effect.succeedNone,
        generate: (job) =>
          Effect.suspend(() => {
            jobs.push(job)
            return outcomes.shift() ?? Effect.succeed(drawn)
          })
      })
      const services = Layer.mergeAll(
        images,
        fake.layer,
        new MediaStoreFake().layer,
        Layer.mock(ChatCompletions, {}),
        Layer.mock(ProviderRouter, {}),
        CustomerUsage.layer,
        Auth.layer,
        RateLimiter.layer
      ).pipe(
        Layer.provideMerge(Layer.mergeAll(RequestLog.layer, RequestReporter.layer, DatabaseTotalsReader.layer)),
        Layer.provideMerge(
          Layer.succeed(Readiness, { unreadyReason: Effect.succeed(undefined), impairedReason: () => undefined })
        ),
        Layer.provideMerge(Catalog.layer(Effect.succeed(options({ text: catalog, environment: keys })))),
        Layer.provideMerge(Layer.merge(Ledger.layer, Idempotency.layer)),
        Layer.provideMerge(TokenWindows.layer),
        Layer.provideMerge(Layer.provide(Refunds.layer, [RefundJournalFake.layer, refundedVideos])),
        Layer.provideMerge(Instance.layer),
        Layer.provideMerge(InFlight.layer)
      )
      return Layer.effect(
        MediaServer,
        Effect.map(HttpServer.HttpServer, ({ address }) => ({
          url: address._tag === "TcpAddress" ? `http://127.0.0.1:${address.port}` : "",
          images: { jobs, script: (outcome) => outcomes.push(outcome) },
          videos: fake
        }))
      ).pipe(
        Layer.provideMerge(serverWith(access)),
        Layer.provide(services),
        Layer.provideMerge(Layer.merge(operator, Layer.provide(Webhooks.layer, fetcherFor([])))),
        Layer.provideMerge(Postgres.layer)
      )
    })
  )

export const layer = layerWith({ areMembersPublic: false })

/** A request of a customer. */
export const post = (customer: { readonly secret: string }, path: string, body: unknown, sent?: Sent) =>
  Effect.flatMap(MediaServer, ({ url }) => postTo(`${url}${path}`, customer, body, sent))

/** What is below `/v1/videos`. */
export const get = ({ secret }: { readonly secret: string }, below = "") =>
  Effect.flatMap(MediaServer, ({ url }) => callAt(`${url}${videos}${below}`, { headers: bearer(secret) }))

/** A new operator or member, with requests of theirs to this server. */
export const asOperator = Effect.fnUntraced(function* (role: Role, org?: OrgId) {
  const { url } = yield* MediaServer
  const operator = yield* hire(role, org)
  return { ...operator, admin: adminAt(url, operator.token) }
})

const last = <A>(jobs: ReadonlyArray<A>): A => {
  const job = jobs.at(-1)
  if (job === undefined) throw new Error("nothing was asked for")
  return job
}

/** The job that the last request became. */
export const lastImage = Effect.map(MediaServer, ({ images }) => last(images.jobs))
export const lastVideo = Effect.map(MediaServer, (media) => last(media.videos.jobs))
