import { HttpServer } from "@effect/platform"
import { Context, Duration, Effect, Layer } from "effect"
import { Readiness } from "../../src/http/Readiness.ts"
import * as Server from "../../src/http/Server.ts"
import { Auth } from "../../src/services/Auth.ts"
import { Catalog } from "../../src/services/Catalog.ts"
import { ChatCompletions } from "../../src/services/ChatCompletions.ts"
import {
  type ImageFailure,
  ImageGenerations,
  type ImageJob,
  type ImageResult
} from "../../src/services/ImageGenerations.ts"
import { InFlight } from "../../src/services/InFlight.ts"
import { Instance } from "../../src/services/Instance.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { RateLimiter } from "../../src/services/RateLimiter.ts"
import { RequestLog } from "../../src/services/RequestLog.ts"
import { VideoJobs } from "../../src/services/VideoJobs.ts"
import { operator } from "./Account.ts"
import { bearer, callAt, type Sent } from "./Calls.ts"
import { keys, options, small } from "./Catalogs.ts"
import * as Postgres from "./Postgres.ts"

export const mediaBodyBytes = 200_000

/** Beside `draw`, which can edit and has 1K and 4K. */
const text = `${small}
  - id: plain
    surface: image
    pricing: {per_image_usd: 0.04}
    routes: [{provider: clips, model: v/plain}]
`

export const drawn: ImageResult = {
  created: 1_700_000_000,
  image: { url: "https://media.test/a.png" },
  revisedPrompt: undefined,
  sandbox: false,
  replayed: false
}

/** The server's address, and what its handlers asked to be drawn. */
export class ImageServer extends Context.Tag("test/ImageServer")<
  ImageServer,
  {
    readonly url: string
    /** Every job so far, oldest first. */
    readonly jobs: ReadonlyArray<ImageJob>
    /** What the next job ends with; after it all succeed again. */
    readonly script: (outcome: Effect.Effect<ImageResult, ImageFailure>) => void
  }
>() {}

/** A real server over a real database, where nothing is drawn. */
export const layer = Layer.unwrapEffect(
  Effect.sync(() => {
    const jobs: Array<ImageJob> = []
    const outcomes: Array<Effect.Effect<ImageResult, ImageFailure>> = []
    const images = Layer.mock(ImageGenerations, {
      generate: (job) =>
        Effect.suspend(() => {
          jobs.push(job)
          return outcomes.shift() ?? Effect.succeed(drawn)
        })
    })
    const server = Server.layer({
      host: "127.0.0.1",
      port: 0,
      publicUrl: "http://gateway.test",
      trustedProxies: 0,
      defaultRpm: 600,
      metricsPublic: false,
      chatBodyBytes: 1000,
      mediaBodyBytes,
      shutdownTimeout: Duration.seconds(1)
    })
    const mocked = Layer.mergeAll(images, Layer.mock(ChatCompletions, {}), Layer.mock(VideoJobs, {}))
    const services = Layer.mergeAll(mocked, Auth.layer, RateLimiter.layer).pipe(
      Layer.provideMerge(RequestLog.layer),
      Layer.provideMerge(Layer.succeed(Readiness, { unready: Effect.succeed(undefined) })),
      Layer.provideMerge(Catalog.layer(options({ text, environment: keys }))),
      Layer.provideMerge(Ledger.layer),
      Layer.provideMerge(Instance.layer),
      Layer.provideMerge(InFlight.layer)
    )
    const address = Effect.map(HttpServer.HttpServer, ({ address: at }) =>
      at._tag === "TcpAddress" ? `http://127.0.0.1:${at.port}` : ""
    )
    return Layer.effect(
      ImageServer,
      Effect.map(address, (url) => ({ url, jobs, script: (outcome) => outcomes.push(outcome) }))
    ).pipe(
      Layer.provideMerge(server),
      Layer.provide(services),
      Layer.merge(operator),
      Layer.provideMerge(Postgres.layer)
    )
  })
)

export const generations = "/v1/images/generations"
export const edits = "/v1/images/edits"

/** A request of a customer; what is no text and no bytes goes as JSON. */
export const post = ({ secret }: { readonly secret: string }, path: string, body: unknown, sent: Sent = {}) =>
  Effect.flatMap(ImageServer, ({ url }) =>
    callAt(`${url}${path}`, {
      method: "POST",
      ...sent,
      body,
      headers: { ...bearer(secret), "content-type": "application/json", ...sent.headers }
    })
  )
