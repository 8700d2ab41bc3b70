import { isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { Context, Effect } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { NestsTooDeep, parseExact, replaceLoneSurrogates } from "../../domain/JsonText.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { whileUnauthenticated } from "../connections/ConnectionLimits.ts"
import {
  type ArrivalFailure,
  type BodySource,
  type IncomingBody,
  type ReceiveFailure,
  smallBodyBytes
} from "./BodyReceiver.ts"
import { type JsonObject, refuse } from "./Guards.ts"
import { type JsonLimits, JsonUnreadable, parseJson } from "./JsonParser.ts"
import { type Part, parseForm } from "./Multipart.ts"

export class Limits extends Context.Tag("gateway/http/Limits")<
  Limits,
  { readonly chatBodyBytes: number; readonly mediaBodyBytes: number }
>() {}

export const bodyLimits: JsonLimits = {
  levels: 128,
  values: 100_000,
  members: 5_000,
  nameBytes: 8_192,
  numberBytes: 1_024
}

const atMost = (limit: number): string => `at most ${limit.toLocaleString("en-US")}`

const explanations: Readonly<Record<JsonUnreadable["reason"], string>> = {
  syntax: "The body is not valid JSON.",
  levels: `The body must nest ${atMost(bodyLimits.levels)} levels deep.`,
  values: `The body must hold ${atMost(bodyLimits.values)} values.`,
  members: `An object in the body must have ${atMost(bodyLimits.members)} members.`,
  nameBytes: `The name of an object's member must have ${atMost(bodyLimits.nameBytes)} bytes.`,
  numberBytes: `A number in the body must have ${atMost(bodyLimits.numberBytes)} characters.`
}

const refuseUnreadable = ({ reason }: JsonUnreadable): InvalidRequest => refuse(null, explanations[reason])

const byteOrderMark = Buffer.from("\ufeff")

const removeByteOrderMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? bytes.subarray(byteOrderMark.length) : bytes

const parseSmall = (bytes: Buffer): Effect.Effect<unknown, InvalidRequest> => {
  try {
    return Effect.succeed(parseExact(replaceLoneSurrogates(bytes.toString("utf8")), bodyLimits.levels))
  } catch (error) {
    return refuseUnreadable(new JsonUnreadable({ reason: error instanceof NestsTooDeep ? "levels" : "syntax" }))
  }
}

const notUtf8 = refuse(null, "The body is not valid UTF-8.")

/** Parses a JSON body. A large body is parsed in slices, which lets other requests run. */
export const parseBody = (body: Buffer): Effect.Effect<unknown, InvalidRequest> => {
  if (!isUtf8(body)) return notUtf8
  const bytes = removeByteOrderMark(body)
  return bytes.length <= smallBodyBytes
    ? parseSmall(bytes)
    : EventLoop.runInSlices(parseJson(bytes, bodyLimits)).pipe(Effect.flatten, Effect.mapError(refuseUnreadable))
}

export const decodeText = (body: Buffer): Effect.Effect<string, InvalidRequest> =>
  isUtf8(body) ? Effect.succeed(removeByteOrderMark(body).toString("utf8")) : notUtf8

const isForm = (contentType: string): boolean =>
  /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(contentType)
export const isMultipart = (contentType: string): boolean => /^\s*multipart\/form-data\b/i.test(contentType)

const readContentType = (request: IncomingMessage): string => request.headers["content-type"] ?? ""

const receiveUncompressed = <E>(
  source: BodySource<E>,
  limitBytes: number
): Effect.Effect<Buffer, InvalidRequest | E> => {
  const encoding = source.request.headers["content-encoding"] ?? "identity"
  return encoding.toLowerCase() === "identity"
    ? source.receive(limitBytes)
    : refuse(null, "Send the body without compression.")
}

export const requireNoForm = (request: IncomingMessage): Effect.Effect<void, InvalidRequest> =>
  isForm(readContentType(request))
    ? refuse(null, "Send the body as JSON with `Content-Type: application/json`, not as a form.")
    : Effect.void

export interface JsonBody {
  readonly value: unknown
  /** The length of the JSON in bytes. */
  readonly bytes: number
}

/** Reads a JSON body. Any content type except a form's is accepted. */
export const readJsonBody = (
  source: BodySource,
  limitBytes: number
): Effect.Effect<JsonBody, InvalidRequest | ReceiveFailure> =>
  Effect.gen(function* () {
    yield* requireNoForm(source.request)
    const body = yield* receiveUncompressed(source, limitBytes)
    return { value: yield* parseBody(body), bytes: body.length }
  })

export const readJson = (source: BodySource, limitBytes: number) =>
  Effect.map(readJsonBody(source, limitBytes), ({ value }) => value)

const maxUnslicedFormBytes = 256 * 1024

/** Reads a JSON body, or a `multipart/form-data` body that `formToJson` converts. */
export const readJsonOrForm = Effect.fnUntraced(function* (
  source: BodySource,
  limitBytes: number,
  formToJson: (parts: ReadonlyArray<Part>) => JsonObject
) {
  const contentType = readContentType(source.request)
  if (!isMultipart(contentType)) return yield* readJson(source, limitBytes)
  const body = yield* receiveUncompressed(source, limitBytes)
  const parts = yield* EventLoop.run(parseForm(contentType, body), body.length > maxUnslicedFormBytes)
  return formToJson(yield* parts)
})

/** The body source for endpoints of the platform's router, because the platform's own reader enforces no minimum speed. */
class RequestBody extends Context.Reference<RequestBody>()("gateway/http/RequestBody", {
  defaultValue: (): { readonly source: BodySource<ArrivalFailure> | undefined } => ({ source: undefined })
}) {}

/** Runs an effect that may call `receiveBody`, then frees the body's memory. */
export const provideBody =
  (body: IncomingBody<ArrivalFailure>) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, RequestBody, { source: body }).pipe(Effect.ensuring(Effect.sync(body.release)))

type ReceiveBodyFailure = InvalidRequest | Exclude<ArrivalFailure, { readonly _tag: "BodyCutOff" }>

/** Receives the body within the memory budget and the minimum speed. Interrupts itself if the client disconnects. */
export const receiveBody = (limitBytes: number): Effect.Effect<Buffer, ReceiveBodyFailure> =>
  Effect.flatMap(RequestBody, ({ source }) =>
    source === undefined
      ? Effect.dieMessage("this request has no body source")
      : Effect.catchTag(receiveUncompressed(source, limitBytes), "BodyCutOff", () => Effect.interrupt)
  )

/** Receives a body before authentication. Meanwhile, the gateway may close the connection to make room for others. */
export const receiveUnidentified = (limitBytes: number): Effect.Effect<Buffer, ReceiveBodyFailure> =>
  Effect.flatMap(RequestBody, ({ source }) => {
    const receive = receiveBody(limitBytes)
    return source === undefined ? receive : whileUnauthenticated(source.request, receive)
  })
