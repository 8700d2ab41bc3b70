import type { ServerResponse } from "node:http"
import { pipeline, Readable } from "node:stream"
import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { stringify } from "../domain/JsonSource.ts"
import { type NanoUsd, toUsdText } from "../domain/Money.ts"
import type { ByteChunks } from "../services/media/Base64.ts"
import { type AnswerHeaders, replayHeader, sandboxHeader } from "./AnswerHeaders.ts"
import type { WireError } from "./errors/ErrorMessages.ts"

export const resultHeaders = (result: { readonly replayed: boolean; readonly sandbox: boolean }): AnswerHeaders => ({
  ...(result.sandbox ? sandboxHeader : {}),
  ...(result.replayed ? replayHeader : {})
})

/** Returns the header with a charge in USD, which has up to nine decimals. */
export const chargeHeader = (charge: NanoUsd): AnswerHeaders => ({ "x-gateway-charge-usd": toUsdText(charge) })

type Headers = Readonly<Record<string, string>>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string | ByteChunks
}

/** The result of a handler that has sent its response itself, as a stream. */
export const alreadySent = undefined
export type AlreadySent = typeof alreadySent

const headersOf = (length: number, headers: Headers): Headers => ({
  "content-type": "application/json; charset=utf-8",
  "content-length": String(length),
  ...headers
})

/** Returns a response whose body is the text: JSON, unless `headers` have another content type. */
export const textAnswer = (status: number, text: string, headers: Headers = {}): Answer => ({
  status,
  headers: headersOf(Buffer.byteLength(text), headers),
  body: text
})

export const jsonInPieces = (status: number, pieces: ByteChunks, headers: Headers = {}): Answer => ({
  status,
  headers: headersOf(pieces.length, headers),
  body: pieces
})

export const json = (status: number, body: unknown, headers: Headers = {}): Answer =>
  textAnswer(status, stringify(body), headers)

export type EncodeError = (error: WireError, requestId: string) => unknown

export const wireError = (error: WireError, headers: Headers = {}, body: unknown = error.body): Answer =>
  json(error.status, body, { ...headers, ...error.headers })

export const respond = ({ body, headers, status }: Answer): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(body, { status, headers })

/** Returns a 200 response. Many responses share `body`, which saves memory. */
export const respondJson = (body: Uint8Array): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(body, { status: 200, headers: headersOf(body.length, {}) })

/** Returns a 304 response if the client already has the version with this `etag`. */
export const respondTagged = (
  { headers: requestHeaders }: HttpServerRequest.HttpServerRequest,
  { body, headers }: { readonly headers: Headers; readonly body: string | Uint8Array }
) => {
  if (requestHeaders["if-none-match"] !== headers["etag"]) return HttpServerResponse.raw(body, { status: 200, headers })
  const { "content-length": _, ...rest } = headers
  return HttpServerResponse.empty({ status: 304, headers: rest })
}

const ignore = (): void => {}

/** Sends the response. If the body is a stream, the effect waits until it is sent. */
export const send = (response: ServerResponse, { body, headers, status }: Answer): Effect.Effect<void> => {
  if (response.destroyed) return Effect.void
  // Without a listener, an error of the connection would end the process.
  response.on("error", ignore)
  response.writeHead(status, headers)
  if (typeof body === "string") {
    response.end(body)
    return Effect.void
  }
  return Effect.async<void>((resume) => {
    // If the body stream fails, `pipeline` destroys the response.
    pipeline(Readable.from(body, { objectMode: false }), response, () => resume(Effect.void))
  })
}
