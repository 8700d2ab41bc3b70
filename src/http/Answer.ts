import type { ServerResponse } from "node:http"
import { pipeline, Readable } from "node:stream"
import { type HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { Effect } from "effect"
import { stringify } from "../domain/JsonSource.ts"
import { type NanoUsd, toUsdText } from "../domain/Money.ts"
import type { Chunks } from "../services/media/Chunks.ts"
import type { WireError } from "./errors/ErrorMessages.ts"

export const resultHeaders = ({ replayed, sandbox }: { readonly replayed: boolean; readonly sandbox: boolean }) => ({
  ...(sandbox ? { "x-gateway-sandbox": "true" } : {}),
  ...(replayed ? { "idempotency-replayed": "true" } : {})
})

/** In USD, to the nano-dollar. */
export const chargeHeader = (charge: NanoUsd) => ({ "x-gateway-charge-usd": toUsdText(charge) })

type Headers = Readonly<Record<string, string>>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: string | Chunks
}

const headersOf = (length: number, headers: Headers): Headers => ({
  "content-type": "application/json; charset=utf-8",
  "content-length": String(length),
  ...headers
})

export const jsonText = (status: number, text: string, headers: Headers = {}): Answer => ({
  status,
  headers: headersOf(Buffer.byteLength(text), headers),
  body: text
})

export const jsonInPieces = (status: number, pieces: Chunks, headers: Headers = {}): Answer => ({
  status,
  headers: headersOf(pieces.length, headers),
  body: pieces
})

export const json = (status: number, body: unknown, headers: Headers = {}): Answer =>
  jsonText(status, stringify(body), headers)

export type EncodeError = (error: WireError, requestId: string) => unknown

export const wireError = (error: WireError, headers: Headers = {}, body: unknown = error.body): Answer =>
  json(error.status, body, { ...headers, ...error.headers })

export const respond = ({ body, headers, status }: Answer): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(body, { status, headers })

/** Answers 200 with bytes that many answers share. */
export const respondJson = (body: Uint8Array): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(body, { status: 200, headers: headersOf(body.length, {}) })

/** 304 where the client has the same already. */
export const respondTagged = (
  { headers: asked }: HttpServerRequest.HttpServerRequest,
  { body, headers }: { readonly headers: Headers; readonly body: string | Uint8Array }
) => {
  if (asked["if-none-match"] !== headers["etag"]) return HttpServerResponse.raw(body, { status: 200, headers })
  const { "content-length": _, ...rest } = headers
  return HttpServerResponse.empty({ status: 304, headers: rest })
}

const ignore = (): void => {}

/** Sends at once; the effect waits for the end of a body in pieces. */
export const send = (response: ServerResponse, { body, headers, status }: Answer): Effect.Effect<void> => {
  if (response.destroyed) return Effect.void
  // Without a listener the error would end the process.
  response.on("error", ignore)
  response.writeHead(status, headers)
  if (typeof body === "string") {
    response.end(body)
    return Effect.void
  }
  return Effect.async<void>((resume) => {
    // A body that breaks destroys the response.
    pipeline(Readable.from(body, { objectMode: false }), response, () => resume(Effect.void))
  })
}
