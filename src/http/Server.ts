import type { Server } from "node:http"
import { HttpApiBuilder, HttpRouter } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { type Duration, Effect, Layer } from "effect"
import { InFlight } from "../services/InFlight.ts"
import { Api } from "./Api.ts"
import { ConnectionLimits, connectionLimits } from "./Connections.ts"
import { Generating } from "./Generating.ts"
import { ChatHandlers } from "./handlers/Chat.ts"
import { CreditsHandlers } from "./handlers/Credits.ts"
import { ImagesHandlers } from "./handlers/Images.ts"
import { MediaRoutes } from "./handlers/Media.ts"
import { ModelsHandlers } from "./handlers/Models.ts"
import { SystemRoutes } from "./handlers/System.ts"
import { VideosHandlers } from "./handlers/Videos.ts"
import { Limits } from "./Limits.ts"
import { listener } from "./Listener.ts"
import { AuthenticatedLayer } from "./middleware/Authenticated.ts"
import { edge } from "./middleware/Edge.ts"

export interface ServerOptions {
  readonly host: string
  readonly port: number
  readonly publicUrl: string
  readonly trustedProxies: number
  readonly defaultRpm: number
  readonly metricsPublic: boolean
  readonly chatBodyBytes: number
  readonly mediaBodyBytes: number
  /** Where local media are, to be served under `/media/`; undefined leaves that to somebody else. */
  readonly mediaDirectory?: string | undefined
  readonly shutdownTimeout: Duration.Duration
}

/** More than Node takes as a request's head; with a shorter limit the router would not know the path of a long id. */
const longestTarget = 64 * 1024

/**
 * Runs first at a stop, while the server still answers: waits for running requests, then ends what is left. Closing
 * the server after that would still wait for connections that never finish their request; those get two seconds.
 */
const Drain = (node: Server, patience: Duration.Duration) =>
  Layer.scopedDiscard(
    Effect.flatMap(InFlight, (inFlight) =>
      Effect.addFinalizer(() =>
        Effect.zipRight(
          inFlight.drain(patience),
          Effect.sync(() => setTimeout(() => node.closeAllConnections(), 2000).unref())
        )
      )
    )
  )

/** The wire: routes, middleware and the Node server. Needs every service, and is the first to close. */
export const layer = (options: ServerOptions) =>
  Layer.unwrapEffect(
    Effect.map(Effect.provideService(listener, ConnectionLimits, connectionLimits(options)), (node) => {
      const api = HttpApiBuilder.api(Api).pipe(
        Layer.provide([ChatHandlers, ImagesHandlers, VideosHandlers, ModelsHandlers, CreditsHandlers]),
        Layer.provide([AuthenticatedLayer, Generating.layer(options)]),
        Layer.provide(Layer.succeed(Limits, options))
      )
      const serving = HttpApiBuilder.serve().pipe(
        Layer.provide(HttpApiBuilder.middleware(edge(options))),
        Layer.provide([SystemRoutes(options), MediaRoutes(options)]),
        Layer.provide(api),
        Layer.provide(HttpRouter.setRouterConfig({ caseSensitive: true, maxParamLength: longestTarget }))
      )
      // While anything listens for upgrades, Node keeps the body of a request that offers one, as clients of HTTP/2 do.
      const plain = Layer.effectDiscard(Effect.sync(() => node.removeAllListeners("upgrade")))
      const server = NodeHttpServer.layer(() => node, { host: options.host, port: options.port })
      return Layer.merge(Drain(node, options.shutdownTimeout), plain).pipe(
        Layer.provideMerge(serving),
        Layer.provideMerge(server)
      )
    })
  )
