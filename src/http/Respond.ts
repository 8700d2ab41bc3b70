import { HttpServerResponse } from "@effect/platform"
import type { Failure } from "../domain/Failure.ts"
import { toWire, type WireError } from "./Wire.ts"

/** A ready answer: the text as it is, with its length known. */
export const jsonText = (
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.raw(text, {
    status,
    headers: {
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(text)),
      ...headers
    }
  })

export const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) =>
  jsonText(status, JSON.stringify(body), headers)

export const wireError = (error: WireError, headers: Readonly<Record<string, string>> = {}) =>
  json(error.status, error.body, { ...headers, ...error.headers })

export const failure = (error: Failure, headers: Readonly<Record<string, string>> = {}) =>
  wireError(toWire(error), headers)
