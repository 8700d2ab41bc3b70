import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { HttpApiBuilder, HttpRouter } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Runtime } from "effect"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import type { Endpoint } from "../admission/Admission.ts"
import { answerHeaders } from "../schema/Headers.ts"
import { makeGeneratingTable } from "./PathTable.ts"
import { makePipeline, type PipelineOptions } from "./Pipeline.ts"
import { pathOf } from "./RequestPath.ts"

type Receive = (request: IncomingMessage, response: ServerResponse) => void

/** Node parses more requests while some wait. */
const maxWaiting = 100

interface Order {
  latest: ServerResponse
  waiting: number
}

/**
 * Receives a request after the answers to earlier ones of its connection: Node hands over all requests of a chunk at once,
 * and hundreds of pipelined requests on a few connections would delay all other clients for seconds. If too many wait, the
 * connection is closed. A request whose client leaves before its turn is never received.
 */
export const inOrder = (receive: Receive): Receive => {
  const orders = new WeakMap<Socket, Order>()
  return (request, response) => {
    const { socket } = request
    const order = orders.get(socket)
    if (order === undefined) {
      orders.set(socket, { latest: response, waiting: 0 })
      return receive(request, response)
    }
    const before = order.latest
    order.latest = response
    if (before.writableFinished || before.destroyed) return receive(request, response)
    if (order.waiting === maxWaiting) return void socket.destroy()
    order.waiting += 1
    before.once("close", () =>
      setImmediate(() => {
        order.waiting -= 1
        if (!request.complete || !request.destroyed) receive(request, response)
      })
    )
  }
}

export const exposedHeaders = [...Object.keys(answerHeaders), "traceresponse", "accept-ranges", "content-range", "etag"]

const methods = "GET, POST, DELETE"
/** Chromium keeps a preflight for no longer. */
const maxAgeSeconds = "7200"
const headerNames = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/
const longestNames = 4096

const isShared = (path: string): boolean => path.startsWith("/v1/") || path.startsWith("/media/")

const preflight = { surface: "preflight", method: "OPTIONS", path: undefined, status: 204, code: null } as const

/** Sets the headers that let a browser's page at one of the origins call; true: a preflight, which is answered. */
export const makeCors = (origins: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const { report } = yield* RequestReporter
    const isOpen = origins.includes("*")
    const allowed: ReadonlySet<string | undefined> = new Set(origins)
    const exposed = exposedHeaders.join(", ")

    return (path: string, { headers, method }: IncomingMessage, response: ServerResponse): boolean => {
      if (!isShared(path)) return false
      const { "access-control-request-headers": asked, "access-control-request-method": wanted, origin } = headers
      const isPreflight = method === "OPTIONS" && origin !== undefined && wanted !== undefined
      if (!isOpen) response.setHeader("vary", "origin")
      if (!isOpen && !allowed.has(origin)) return false
      response.setHeader("access-control-allow-origin", isOpen ? "*" : (origin ?? ""))
      if (!isPreflight) {
        response.setHeader("access-control-expose-headers", exposed)
        return false
      }
      response.setHeader("access-control-allow-methods", methods)
      if (asked !== undefined && asked.length <= longestNames && headerNames.test(asked)) {
        response.setHeader("access-control-allow-headers", asked)
      }
      response.setHeader("access-control-max-age", maxAgeSeconds)
      response.appendHeader("vary", "access-control-request-headers")
      const requestId = ids.prefixed("req")
      report({ ...preflight, requestId, startedAt: undefined })
      response.writeHead(204, { "x-request-id": requestId }).end()
      return true
    }
  })

export interface DispatchOptions extends PipelineOptions {
  /** Origins whose pages may call, or `*`. */
  readonly corsOrigins: ReadonlyArray<string>
}

/** Longer than Node's limit for a head, so that the router sees the path of a long id. */
const longestTarget = 64 * 1024

/** Hands each request to the pipeline: what generates in one fiber, without the platform's router and middleware. */
export const layer = <E, R>(
  node: Server,
  options: DispatchOptions,
  endpoints: Effect.Effect<ReadonlyArray<Endpoint>, E, R>
) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const { corsOrigins } = options
      const { generate, serve } = yield* makePipeline(options)
      const findGenerating = makeGeneratingTable(yield* endpoints)
      const answerPreflight = corsOrigins.length === 0 ? undefined : yield* makeCors(corsOrigins)
      const router = HttpRouter.toHttpApp(yield* HttpApiBuilder.Router.router)
      const app = yield* HttpRouter.withRouterConfig(router, { caseSensitive: true, maxParamLength: longestTarget })
      const handle = yield* NodeHttpServer.makeHandler(serve(app))
      const fork = Runtime.runFork(yield* Effect.runtime())

      const receive = inOrder((request, response) => {
        const { method, url = "" } = request
        if (answerPreflight?.(pathOf(url), request, response)) return
        const endpoint = findGenerating(method, url)
        if (endpoint === undefined) return handle(request, response)
        // By then a body that came with its head is there too.
        setImmediate(() => fork(generate({ request, response }, endpoint)))
      })
      yield* Effect.acquireRelease(
        Effect.sync(() => node.on("request", receive)),
        () => Effect.sync(() => node.off("request", receive))
      )
    })
  ).pipe(Layer.provide(HttpApiBuilder.Router.Live))
