import type { Stats } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import send from "send"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { type MediaName, parseMediaName } from "../../domain/Media.ts"
import { respond, wireError } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { RequestContext } from "../admission/RequestContext.ts"

/** As sent: nothing is decoded, so nothing can hide in an escape. */
const target = /^(?:https?:\/\/[^/?#]*)?\/media\/([^?#]*)(?:[?#].*)?$/is

const servedHeaders = ({ id, type }: MediaName) => ({
  // A file never changes under its name.
  etag: `"${id}"`,
  "content-type": type,
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'"
})

const refusals = new Map([
  [412, "The condition of the request does not hold."],
  [416, "The requested range cannot be satisfied."]
])

const fileRefusal = (status: number, message: string, contentRange: string | undefined) =>
  respond(
    wireError(
      { status, body: { error: { message, type: "invalid_request_error", param: null, code: null } } },
      contentRange === undefined ? {} : { "content-range": contentRange }
    )
  )

/** The library would refuse a suffix beyond the size, where the standard gives all. */
const wholeForLongSuffix = (request: IncomingMessage, size: number) => {
  const suffix = /^ *bytes=-(\d+)$/.exec(request.headers.range ?? "")?.[1]
  if (suffix !== undefined && size > 0 && Number(suffix) > size) request.headers.range = "bytes=0-"
}

interface Unsendable extends Error {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

const serve = (options: {
  readonly directory: string
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly request: IncomingMessage
  readonly response: ServerResponse
}) =>
  Effect.async<HttpServerResponse.HttpServerResponse, UnknownEndpoint>((resume) => {
    const { directory, headers, name, request, response } = options
    const own = new Set(response.getHeaderNames())
    const done = () => resume(Effect.succeed(HttpServerResponse.empty()))
    const fail = ({ headers: more, message, status }: Unsendable) => {
      if (response.headersSent) return void response.destroy()
      for (const name of response.getHeaderNames()) if (!own.has(name)) response.removeHeader(name)
      const refusal = refusals.get(status)
      if (refusal !== undefined) return resume(Effect.succeed(fileRefusal(status, refusal, more?.["Content-Range"])))
      resume(
        status === 404 ? new UnknownEndpoint() : Effect.dieMessage(`a file of the media cannot be sent: ${message}`)
      )
    }
    // The server does not interrupt us for a client that leaves after the last write.
    response.once("finish", done).once("close", () => response.writableEnded && done())
    // Without a listener the error would end the process.
    response.on("error", () => {})
    send(request, `/${name}`, { root: directory, index: false, cacheControl: false, etag: false })
      .on("file", (_file: string, { size }: Stats) => wholeForLongSuffix(request, size))
      .on("headers", () => response.setHeaders(new Map(Object.entries(headers))))
      .on("directory", () => resume(new UnknownEndpoint()))
      .on("error", fail)
      .pipe(response)
  })

export const MediaHandlers = ({ mediaDirectory: directory }: { readonly mediaDirectory?: string | undefined }) =>
  directory === undefined
    ? Layer.empty
    : HttpApiBuilder.group(SiteApi, "media", (handlers) =>
        handlers.handleRaw("file", ({ request: sent }) =>
          Effect.gen(function* () {
            const { requestId } = yield* RequestContext
            const name = target.exec(sent.url)?.[1] ?? ""
            const media = parseMediaName(name)
            if (media?.visibility !== "public") return yield* new UnknownEndpoint()
            return yield* serve({
              directory,
              name,
              headers: { ...servedHeaders(media), "x-request-id": requestId },
              request: NodeHttpServerRequest.toIncomingMessage(sent),
              response: NodeHttpServerRequest.toServerResponse(sent)
            })
          })
        )
      )
