import { HttpServerResponse } from "@effect/platform"
import { Stream } from "effect"
import type { Failure } from "../domain/Failure.ts"
import type { Pieces } from "../services/Pieces.ts"
import { toWire, type WireError } from "./Wire.ts"

const headersOf = (length: number, headers: Readonly<Record<string, string>>) => ({
  "content-type": "application/json; charset=utf-8",
  "content-length": String(length),
  ...headers
})

/** A ready answer: the text as it is, with its length known. */
export const jsonText = (
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(text, { status, headers: headersOf(Buffer.byteLength(text), headers) })

/** A large answer, made as its client takes it. */
export const jsonInPieces = (
  status: number,
  pieces: Pieces,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.suspend(() => Stream.fromIteratorSucceed(pieces[Symbol.iterator](), 1)),
    { status, headers: headersOf(pieces.length, headers) }
  )

export const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  jsonText(status, JSON.stringify(body), headers)

export const wireError = (error: WireError, headers: Readonly<Record<string, string>> = {}) =>
  json(error.status, error.body, { ...headers, ...error.headers })

export const failure = (error: Failure, headers: Readonly<Record<string, string>> = {}) =>
  wireError(toWire(error), headers)
