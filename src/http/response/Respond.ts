import { HttpServerResponse } from "@effect/platform"
import type { Failure } from "../../domain/Failure.ts"
import type { WireError } from "../errors/Wire.ts"
import * as Answer from "./Answer.ts"

type Headers = Readonly<Record<string, string>>

const respond = ({ body, headers, status }: Answer.Answer) => HttpServerResponse.raw(body, { status, headers })

export const jsonText = (status: number, text: string, headers: Headers = {}) =>
  respond(Answer.jsonText(status, text, headers))

export const json = (status: number, body: unknown, headers: Headers = {}) =>
  respond(Answer.json(status, body, headers))

export const wireError = (error: WireError, headers: Headers = {}) => respond(Answer.wireError(error, headers))

export const failure = (error: Failure, headers: Headers = {}) => respond(Answer.failure(error, headers))
