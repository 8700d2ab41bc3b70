import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { HttpApiBuilder, HttpRouter } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, Runtime } from "effect"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestLines.ts"
import { answerHeaders, requestIdHeader } from "../AnswerHeaders.ts"
import type { Endpoint } from "../admission/Admission.ts"
import { makeGeneratingTable, pathOf } from "./PathTable.ts"
import { makePipeline, type PipelineOptions } from "./Pipeline.ts"

type Receive = (request: IncomingMessage, response: ServerResponse) => void

/** The maximum of waiting requests per connection. Node parses further requests while earlier ones wait. */
const maxQueued = 100

interface Queue {
  latest: ServerResponse
  waitingCount: number
}

/**
 * Passes a request to `receive` only after the responses to earlier requests of its connection. Node emits all requests of a
 * chunk together, and hundreds of pipelined requests on a few connections would delay all other clients for seconds. If too many
 * requests wait, the connection is closed. A waiting request is dropped if its client disconnects.
 */
const receiveInOrder = (receive: Receive): Receive => {
  const queues = new WeakMap<Socket, Queue>()
  return (request, response) => {
    const { socket } = request
    const queue = queues.get(socket)
    if (queue === undefined) {
      queues.set(socket, { latest: response, waitingCount: 0 })
      return receive(request, response)
    }
    const previous = queue.latest
    queue.latest = response
    if (previous.writableFinished || previous.destroyed) return receive(request, response)
    if (queue.waitingCount === maxQueued) return void socket.destroy()
    queue.waitingCount += 1
    previous.once("close", () =>
      setImmediate(() => {
        queue.waitingCount -= 1
        if (!request.complete || !request.destroyed) receive(request, response)
      })
    )
  }
}

export const exposedHeaders = Object.keys(answerHeaders)

const methods = "GET, POST, DELETE"
/** How long browsers may cache a preflight. Chromium accepts no longer time. */
const maxAgeSeconds = "7200"
const headerNames = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/
const maxHeaderNamesLength = 4096

const allowsCors = (path: string): boolean => path.startsWith("/v1/") || path.startsWith("/media/")

const preflight = { surface: "preflight", method: "OPTIONS", path: undefined, status: 204, code: null } as const

/** Returns a function that sets the CORS headers. It returns true if the request was a preflight, which it answers. */
const makeCors = (origins: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const { report } = yield* RequestReporter
    const allowsAnyOrigin = origins.includes("*")
    const allowedOrigins: ReadonlySet<string | undefined> = new Set(origins)
    const exposedNames = exposedHeaders.join(", ")

    return (path: string, { headers, method }: IncomingMessage, response: ServerResponse): boolean => {
      if (!allowsCors(path)) return false
      const {
        "access-control-request-headers": requestHeaders,
        "access-control-request-method": requestMethod,
        origin
      } = headers
      const isPreflight = method === "OPTIONS" && origin !== undefined && requestMethod !== undefined
      if (!allowsAnyOrigin) response.setHeader("vary", "origin")
      if (!allowsAnyOrigin && !allowedOrigins.has(origin)) return false
      response.setHeader("access-control-allow-origin", allowsAnyOrigin ? "*" : (origin ?? ""))
      if (!isPreflight) {
        response.setHeader("access-control-expose-headers", exposedNames)
        return false
      }
      response.setHeader("access-control-allow-methods", methods)
      if (
        requestHeaders !== undefined &&
        requestHeaders.length <= maxHeaderNamesLength &&
        headerNames.test(requestHeaders)
      ) {
        response.setHeader("access-control-allow-headers", requestHeaders)
      }
      response.setHeader("access-control-max-age", maxAgeSeconds)
      response.appendHeader("vary", "access-control-request-headers")
      const requestId = ids.prefixed("req")
      report({ ...preflight, requestId, startedAt: undefined })
      response.writeHead(204, { [requestIdHeader]: requestId }).end()
      return true
    }
  })

export interface DispatchOptions extends PipelineOptions {
  /** Origins allowed by CORS, or `*`. */
  readonly corsOrigins: ReadonlyArray<string>
}

/** The router's limit for an id. It exceeds Node's limit for a request head, so the router rejects no id as too long. */
const maxPathParamLength = 64 * 1024

/** Passes requests to the pipeline. Each generating request runs in a single fiber without the platform's router. */
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
      const app = yield* HttpRouter.withRouterConfig(router, {
        caseSensitive: true,
        maxParamLength: maxPathParamLength
      })
      const handle = yield* NodeHttpServer.makeHandler(serve(app))
      const fork = Runtime.runFork(yield* Effect.runtime())

      const receive = receiveInOrder((request, response) => {
        const { method, url = "" } = request
        if (answerPreflight?.(pathOf(url), request, response)) return
        const endpoint = findGenerating(method, url)
        if (endpoint === undefined) return handle(request, response)
        // Waits for the next turn of the event loop. By then, Node has parsed a body that arrived with the head.
        setImmediate(() => fork(generate({ request, response }, endpoint)))
      })
      yield* Effect.acquireRelease(
        Effect.sync(() => node.on("request", receive)),
        () => Effect.sync(() => node.off("request", receive))
      )
    })
  ).pipe(Layer.provide(HttpApiBuilder.Router.Live))
