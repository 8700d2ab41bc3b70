import { HttpServer } from "@effect/platform"
import { Duration, Effect, Layer } from "effect"
import * as Server from "../../../src/http/server/Server.ts"
import { Readiness } from "../../../src/http/system/Readiness.ts"
import { Auth } from "../../../src/services/access/Auth.ts"
import { RateLimiter } from "../../../src/services/access/RateLimiter.ts"
import { Catalog } from "../../../src/services/catalog/Catalog.ts"
import type { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import type { ImageGenerations } from "../../../src/services/images/ImageGenerations.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { RefundJournal } from "../../../src/services/ledger/RefundJournal.ts"
import { Refunds } from "../../../src/services/ledger/Refunds.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Instance } from "../../../src/services/runtime/Instance.ts"
import { RequestLog } from "../../../src/services/telemetry/RequestLog.ts"
import type { VideoJobs } from "../../../src/services/videos/VideoJobs.ts"
import { operator } from "../client/Account.ts"
import * as Postgres from "../database/Postgres.ts"
import { keys, options } from "../fixtures/Catalogs.ts"

export const mediaBodyBytes = 200_000

/** A real server over a real database with a catalog of its own, where nothing is generated. */
export const layer = (catalog: string, mocked: Layer.Layer<ChatCompletions | ImageGenerations | VideoJobs>) => {
  const server = Server.layer({
    host: "127.0.0.1",
    port: 0,
    publicUrl: "http://gateway.test",
    trustedProxies: 0,
    defaultRpm: 600,
    metricsPublic: false,
    chatBodyBytes: 1000,
    mediaBodyBytes,
    shutdownDelay: Duration.zero,
    shutdownTimeout: Duration.seconds(1)
  })
  const services = Layer.mergeAll(mocked, Auth.layer, RateLimiter.layer).pipe(
    Layer.provideMerge(RequestLog.layer),
    Layer.provideMerge(Layer.succeed(Readiness, { unready: Effect.succeed(undefined), impaired: () => undefined })),
    Layer.provideMerge(Catalog.layer(options({ text: catalog, environment: keys }))),
    Layer.provideMerge(Layer.merge(Ledger.layer, Idempotency.layer)),
    Layer.provideMerge(Layer.provide(Refunds.layer, RefundJournal.layerMemory)),
    Layer.provideMerge(Instance.layer),
    Layer.provideMerge(InFlight.layer)
  )
  return server.pipe(Layer.provide(services), Layer.merge(operator), Layer.provideMerge(Postgres.layer))
}

/** Where it listens, without `/v1`. */
export const address = Effect.map(HttpServer.HttpServer, ({ address: at }) =>
  at._tag === "TcpAddress" ? `http://127.0.0.1:${at.port}` : ""
)
