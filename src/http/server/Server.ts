import type { Server } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Duration, Effect, Layer } from "effect"
import { Instance } from "../../services/instance/Instance.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { CreditsHandlers, StatementHandlers, UsageHandlers } from "../account/AccountHandlers.ts"
import { AdminRoutes } from "../admin/AdminApi.ts"
import { AuthenticatedLayer } from "../admission/Admission.ts"
import { Limits } from "../body/BodyReader.ts"
import { chatCompletions } from "../chat/ChatCompletionsDialect.ts"
import { chatEndpoints } from "../chat/ChatHandlers.ts"
import { ConnectionLimits, connectionLimits } from "../connections/ConnectionLimits.ts"
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
import { makeNodeServer } from "./NodeServer.ts"
import { StartingServer } from "./StartingServer.ts"

interface ServerOptions extends Dispatch.DispatchOptions {
  readonly host: string
  readonly port: number
  readonly publicUrl: string
  /** Whether the operator has set `publicUrl`. */
  readonly hasPublicUrl?: boolean | undefined
  /** The start of the links to stored media. */
  readonly mediaPublicUrl: string
  readonly areMetricsPublic: boolean
  /** Whether operators may sign in from other machines. */
  readonly isConsolePublic: boolean
  /** Whether members may sign in from other machines. */
  readonly areMembersPublic: boolean
  readonly chatBodyBytes: number
  readonly mediaBodyBytes: number
  /** The directory that `/media/` serves. If undefined, `/media/` is not served. */
  readonly mediaDirectory?: string | undefined
  /** How long to keep serving before draining. The default is `peerDelay` if other instances are running, else 0. */
  readonly shutdownDelay: Duration.Duration | undefined
  readonly shutdownTimeout: Duration.Duration
}

/** Load balancers stop using an unready instance within this time. */
const peerDelay = Duration.seconds(5)

/** Drains the server when the process stops, before all other finalizers. Then open connections get two more seconds. */
const Drain = (node: Server, { shutdownDelay, shutdownTimeout }: ServerOptions) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const inFlight = yield* InFlight
      const instance = yield* Instance
      const defaultDelay = Effect.map(instance.hasPeers, (hasPeers) => (hasPeers ? peerDelay : Duration.zero))
      const waitForPeers = Effect.gen(function* () {
        const delay = shutdownDelay ?? (yield* defaultDelay)
        if (Duration.equals(delay, Duration.zero)) return
        yield* Effect.logInfo(`Stopping: reporting unready, serving for another ${Duration.format(delay)}`)
        yield* Effect.sleep(delay)
      })
      yield* Effect.addFinalizer(() =>
        inFlight.announceStop.pipe(
          Effect.zipRight(waitForPeers),
          Effect.zipRight(inFlight.drain(shutdownTimeout)),
          Effect.zipRight(Effect.sync(() => setTimeout(() => node.closeAllConnections(), 2000).unref()))
        )
      )
    })
  )

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
      const startingServer = yield* StartingServer
      const node = yield* Effect.provideService(makeNodeServer, ConnectionLimits, connectionLimits(options))
      const dispatch = Dispatch.layer(node, options, generatingEndpoints).pipe(
        Layer.provide(handlers(options)),
        Layer.provide(Layer.succeed(Limits, options))
      )
      const takeAddress = () => {
        startingServer.close()
        return node
      }
      const server = NodeHttpServer.layer(takeAddress, { host: options.host, port: options.port })
      return Layer.provideMerge(Layer.provideMerge(Drain(node, options), dispatch), server)
    })
  )
