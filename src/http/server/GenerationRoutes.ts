import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, Runtime } from "effect"
import { RequestTrace } from "../../services/telemetry/RequestTrace.ts"
import { Tracing } from "../../services/telemetry/Tracing.ts"
import { Admission, type Endpoint } from "../admission/Admission.ts"

export class GenerationRoutes extends Context.Tag("gateway/http/GeneratingRoutes")<
  GenerationRoutes,
  ReadonlyMap<string, Endpoint>
>() {}

const origin = /^https?:\/\/[^/?#]*/i

const decoded = (path: string): string => {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/** As lenient as the platform's router. */
const pathOf = (target: string): string => {
  const path = target
    .replace(origin, "")
    .replace(/[?#;].*$/s, "")
    .replace(/\/{2,}/g, "/")
  return (path.includes("%") ? decoded(path) : path).replace(/(?<=.)\/$/, "")
}

/** Skips the platform's router and middleware: one fiber per request. */
export const layer = (node: Server) =>
  Layer.effect(
    HttpServer.HttpServer,
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      const admission = yield* Admission
      const routes = yield* GenerationRoutes
      const { tracer } = yield* Tracing
      const fork = Runtime.runFork(yield* Effect.runtime())

      const serve = (endpoint: Endpoint, route: string, request: IncomingMessage, response: ServerResponse) => {
        const { headers, method = "" } = request
        const trace = tracer && RequestTrace.begin(tracer, { method, route, headers })
        if (trace === undefined) return admission.serve(endpoint, request, response)
        response.setHeader("traceresponse", trace.span.traceparent)
        return Effect.ensuring(
          admission.serve(endpoint, request, response, trace),
          Effect.sync(() => trace.end())
        )
      }

      const generate = (request: IncomingMessage, response: ServerResponse): boolean => {
        const { method, url = "" } = request
        if (method !== "POST") return false
        const route = routes.has(url) ? url : pathOf(url)
        const endpoint = routes.get(route)
        if (endpoint === undefined) return false
        const serving = serve(endpoint, route, request, response)
        // By then a body that came with its head is there too.
        setImmediate(() => fork(Effect.uninterruptible(serving)))
        return true
      }
      return HttpServer.make({
        address,
        serve: (app, middleware) =>
          Effect.gen(function* () {
            const handle = yield* NodeHttpServer.makeHandler(middleware === undefined ? app : middleware(app))
            const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
              if (!generate(request, response)) handle(request, response)
            }
            yield* Effect.acquireRelease(
              Effect.sync(() => node.on("request", onRequest)),
              () => Effect.sync(() => node.off("request", onRequest))
            )
          })
      })
    })
  )
