import type { Stats } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import { HttpApiBuilder, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import send from "send"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { type MediaName, parseMediaName } from "../../domain/Media.ts"
import { requestIdHeader } from "../AnswerHeaders.ts"
import { SiteApi } from "../Api.ts"
import { RequestContext } from "../admission/RequestContext.ts"
import { respond, wireError } from "../HttpAnswer.ts"

/** Matches the raw URL, because decoding could turn an escape into a path separator. */
const target = /^(?:https?:\/\/[^/?#]*)?\/media\/([^?#]*)(?:[?#].*)?$/is

const servedHeaders = ({ id, type }: MediaName) => ({
  // The id identifies the content, because a file never changes.
  etag: `"${id}"`,
  "content-type": type,
  "cache-control": "public, max-age=31536000, immutable",
  "x-content-type-options": "nosniff",
  "content-security-policy": "sandbox; default-src 'none'"
})

const refusals = new Map([
  [412, "A precondition of the request failed."],
  [416, "The requested range cannot be satisfied."]
])

const fileRefusal = (status: number, message: string, contentRange: string | undefined) =>
  respond(
    wireError(
      { status, body: { error: { message, type: "invalid_request_error", param: null, code: null } } },
      contentRange === undefined ? {} : { "content-range": contentRange }
    )
  )

/** Limits a suffix range to the file, because the library refuses a larger one and HTTP requires the whole file. */
const clampSuffixRange = (request: IncomingMessage, size: number) => {
  const suffix = /^ *bytes=-(\d+)$/.exec(request.headers.range ?? "")?.[1]
  if (suffix !== undefined && size > 0 && Number(suffix) > size) request.headers.range = "bytes=0-"
}

interface SendError extends Error {
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
    const ownHeaders = new Set(response.getHeaderNames())
    const finish = () => resume(Effect.succeed(HttpServerResponse.empty()))
    const fail = ({ headers: errorHeaders, message, status }: SendError) => {
      if (response.headersSent) return void response.destroy()
      for (const name of response.getHeaderNames()) if (!ownHeaders.has(name)) response.removeHeader(name)
      const refusal = refusals.get(status)
      if (refusal !== undefined)
        return resume(Effect.succeed(fileRefusal(status, refusal, errorHeaders?.["Content-Range"])))
      resume(status === 404 ? new UnknownEndpoint() : Effect.dieMessage(`a media file cannot be sent: ${message}`))
    }
    // A client may disconnect after the last write. Then the server does not interrupt this effect, so `close` ends it.
    response.once("finish", finish).once("close", () => response.writableEnded && finish())
    // Without a listener, an error of the connection would end the process.
    response.on("error", () => {})
    send(request, `/${name}`, { root: directory, index: false, cacheControl: false, etag: false })
      .on("file", (_file: string, { size }: Stats) => clampSuffixRange(request, size))
      .on("headers", () => response.setHeaders(new Map(Object.entries(headers))))
      .on("directory", () => resume(new UnknownEndpoint()))
      .on("error", fail)
      .pipe(response)
  })

export const MediaHandlers = ({ mediaDirectory: directory }: { readonly mediaDirectory?: string | undefined }) =>
  directory === undefined
    ? Layer.empty
    : HttpApiBuilder.group(SiteApi, "media", (handlers) =>
        handlers.handleRaw("file", ({ request }) =>
          Effect.gen(function* () {
            const { requestId } = yield* RequestContext
            const name = target.exec(request.url)?.[1] ?? ""
            const media = parseMediaName(name)
            if (media?.visibility !== "public") return yield* new UnknownEndpoint()
            return yield* serve({
              directory,
              name,
              headers: { ...servedHeaders(media), [requestIdHeader]: requestId },
              request: NodeHttpServerRequest.toIncomingMessage(request),
              response: NodeHttpServerRequest.toServerResponse(request)
            })
          })
        )
      )
