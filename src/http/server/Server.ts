import type { Server } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Duration, Effect, Layer } from "effect"
import { Instance } from "../../services/instance/Instance.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { CreditsHandlers, StatementHandlers, UsageHandlers } from "../account/AccountHandlers.ts"
import { AdminRoutes } from "../admin/AdminApi.ts"
import { AuthenticatedLayer } from "../admission/CallerAuthentication.ts"
import { Limits } from "../body/BodyReader.ts"
import { chatCompletions } from "../chat/ChatCompletionsDialect.ts"
import { chatEndpoints } from "../chat/ChatHandlers.ts"
import { ConnectionLimits, connectionLimits } from "../connections/Connections.ts"
import { ConsoleHandlers } from "../console/ConsoleHandlers.ts"
import { DocsHandlers } from "../docs/DocsHandlers.ts"
import { imageEndpoints } from "../images/ImageHandlers.ts"
import { MediaHandlers } from "../media/MediaHandlers.ts"
import { countTokensEndpoint, messages } from "../messages/MessagesDialect.ts"
import { ModelsHandlers } from "../models/ModelHandlers.ts"
import { quoteEndpoint } from "../quote/QuoteEndpoint.ts"
import { responses } from "../responses/ResponsesDialect.ts"
import { StripeHandlers } from "../stripe/StripeHandlers.ts"
import { SystemHandlers } from "../system/SystemHandlers.ts"
import { VideosHandlers, videoEndpoint } from "../videos/VideoHandlers.ts"
import * as Dispatch from "./Dispatch.ts"
import { listener } from "./Listener.ts"
import { StartingServer } from "./StartingServer.ts"

interface ServerOptions extends Dispatch.DispatchOptions {
  readonly host: string
  readonly port: number
  readonly publicUrl: string
  readonly metricsPublic: boolean
  readonly consolePublic: boolean
  readonly membersPublic: boolean
  readonly chatBodyBytes: number
  readonly mediaBodyBytes: number
  /** Served under `/media/`; undefined: not served. */
  readonly mediaDirectory?: string | undefined
  /** Time to serve on before draining; undefined: `peerDelay` if another instance lives. */
  readonly shutdownDelay: Duration.Duration | undefined
  readonly shutdownTimeout: Duration.Duration
}

/** Load balancers notice an unready instance within this time. */
const peerDelay = Duration.seconds(5)

/** Runs first at a stop; unfinished connections get two seconds more. */
const Drain = (node: Server, { shutdownDelay, shutdownTimeout }: ServerOptions) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const inFlight = yield* InFlight
      const instance = yield* Instance
      const automatic = Effect.map(instance.hasPeers, (has) => (has ? peerDelay : Duration.zero))
      const wait = Effect.gen(function* () {
        const delay = shutdownDelay ?? (yield* automatic)
        if (Duration.equals(delay, Duration.zero)) return
        yield* Effect.logInfo(`Stopping: unready, serving for ${Duration.format(delay)} more`)
        yield* Effect.sleep(delay)
      })
      yield* Effect.addFinalizer(() =>
        inFlight.announceStop.pipe(
          Effect.zipRight(wait),
          Effect.zipRight(inFlight.drain(shutdownTimeout)),
          Effect.zipRight(Effect.sync(() => setTimeout(() => node.closeAllConnections(), 2000).unref()))
        )
      )
    })
  )

/** The ways in for chats. */
const dialects = [chatCompletions, responses, messages]

const generatingEndpoints = Effect.gen(function* () {
  const { edit, generate } = yield* imageEndpoints
  return [
    ...(yield* chatEndpoints(dialects)),
    yield* countTokensEndpoint,
    generate,
    edit,
    yield* videoEndpoint,
    yield* quoteEndpoint(dialects)
  ]
})

const handlers = (options: ServerOptions) =>
  Layer.mergeAll(
    Layer.provide(
      Layer.mergeAll(VideosHandlers, ModelsHandlers, CreditsHandlers, UsageHandlers, StatementHandlers),
      AuthenticatedLayer
    ),
    AdminRoutes(options),
    StripeHandlers,
    SystemHandlers(options),
    DocsHandlers(options),
    ConsoleHandlers(options),
    MediaHandlers(options)
  )

export const layer = (options: ServerOptions) =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const starting = yield* StartingServer
      const node = yield* Effect.provideService(listener, ConnectionLimits, connectionLimits(options))
      const serving = Dispatch.layer(node, options, generatingEndpoints).pipe(
        Layer.provide(handlers(options)),
        Layer.provide(Layer.succeed(Limits, options))
      )
      const takeAddress = () => {
        starting.close()
        return node
      }
      const server = NodeHttpServer.layer(takeAddress, { host: options.host, port: options.port })
      return Layer.provideMerge(Layer.provideMerge(Drain(node, options), serving), server)
    })
  )
