import type { IncomingMessage, Server, ServerResponse } from "node:http"
import { HttpServer } from "@effect/platform"
import { NodeHttpServer } from "@effect/platform-node"
import { Context, Effect, Layer, Runtime, RuntimeFlags } from "effect"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import { Admission, type Endpoint } from "../admission/Admission.ts"
import { cors } from "./Cors.ts"

export class GenerationRoutes extends Context.Tag("gateway/http/GenerationRoutes")<
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
export const pathOf = (target: string): string => {
  const path = target
    .replace(origin, "")
    .replace(/[?#;].*$/s, "")
    .replace(/\/{2,}/g, "/")
  return (path.includes("%") ? decoded(path) : path).replace(/(?<=.)\/$/, "")
}

/** Skips the platform's router and middleware: one fiber per request. */
export const layer = (node: Server, corsOrigins: ReadonlyArray<string>) =>
  Layer.effect(
    HttpServer.HttpServer,
    Effect.gen(function* () {
      const { address } = yield* HttpServer.HttpServer
      const admission = yield* Admission
      const routes = yield* GenerationRoutes
      const ids = yield* Ids
      const { report } = yield* RequestReporter
      const answered = { surface: "preflight", method: "OPTIONS", path: undefined, status: 204, code: null } as const
      const reportPreflight = () => {
        const requestId = ids.prefixed("req")
        report({ ...answered, requestId, startedAt: undefined })
        return requestId
      }
      const answerPreflight = corsOrigins.length === 0 ? undefined : cors(corsOrigins, reportPreflight)
      const fork = Runtime.runFork(Runtime.disableRuntimeFlag(yield* Effect.runtime(), RuntimeFlags.Interruption))

      const generate = (request: IncomingMessage, response: ServerResponse): boolean => {
        const { method, url = "" } = request
        const endpoint = method === "POST" ? (routes.get(url) ?? routes.get(pathOf(url))) : undefined
        if (endpoint === undefined) return false
        // By then a body that came with its head is there too.
        setImmediate(() => fork(admission.serve(endpoint, request, response)))
        return true
      }
      return HttpServer.make({
        address,
        serve: (app, middleware) =>
          Effect.gen(function* () {
            const handle = yield* NodeHttpServer.makeHandler(middleware === undefined ? app : middleware(app))
            const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
              if (answerPreflight?.(pathOf(request.url ?? ""), request, response)) return
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
