import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import { answerHeaders } from "../schema/Headers.ts"

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
