import { isUtf8 } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { Context, Effect } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { NestsTooDeep, parseExact, withWholePairs } from "../../domain/JsonText.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { type Incoming, type ReceiveFailure, smallBody } from "./BodyReceiver.ts"
import { type JsonObject } from "./Guards.ts"
import { type JsonLimits, JsonUnreadable, parseJson } from "./JsonParser.ts"
import { type Part, parseForm } from "./Multipart.ts"
import { refuse } from "./Refusals.ts"

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

const explainUnreadable = ({ reason }: JsonUnreadable): InvalidRequest => refuse(null, explanations[reason])

const byteOrderMark = Buffer.from("\ufeff")

const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? bytes.subarray(byteOrderMark.length) : bytes

const parseSmall = (bytes: Buffer): Effect.Effect<unknown, InvalidRequest> => {
  try {
    return Effect.succeed(parseExact(withWholePairs(bytes.toString("utf8")), bodyLimits.levels))
  } catch (error) {
    return explainUnreadable(new JsonUnreadable({ reason: error instanceof NestsTooDeep ? "levels" : "syntax" }))
  }
}

const notUtf8 = refuse(null, "The body is not valid UTF-8.")

/** Parses a JSON body; a large one in slices, so that no other request waits for it. */
export const parseBody = (body: Buffer): Effect.Effect<unknown, InvalidRequest> => {
  if (!isUtf8(body)) return notUtf8
  const bytes = withoutMark(body)
  return bytes.length <= smallBody
    ? parseSmall(bytes)
    : EventLoop.runInSlices(parseJson(bytes, bodyLimits)).pipe(Effect.flatten, Effect.mapError(explainUnreadable))
}

export const decodeText = (body: Buffer): Effect.Effect<string, InvalidRequest> =>
  isUtf8(body) ? Effect.succeed(withoutMark(body).toString("utf8")) : notUtf8

const isForm = (contentType: string): boolean =>
  /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\b/i.test(contentType)
export const isMultipart = (contentType: string): boolean => /^\s*multipart\/form-data\b/i.test(contentType)

const typeOf = (request: IncomingMessage): string => request.headers["content-type"] ?? ""

export const readPlain = <E>(incoming: Incoming<E>, limitBytes: number): Effect.Effect<Buffer, InvalidRequest | E> => {
  const encoding = incoming.request.headers["content-encoding"] ?? "identity"
  return encoding.toLowerCase() === "identity"
    ? incoming.receive(limitBytes)
    : refuse(null, "A compressed body is not accepted.")
}

export const requireNoForm = (request: IncomingMessage): Effect.Effect<void, InvalidRequest> =>
  isForm(typeOf(request))
    ? refuse(null, "The body must be JSON, sent as `Content-Type: application/json`, not a form.")
    : Effect.void

/** A body that was read. */
export interface Document {
  readonly value: unknown
  /** The length of its JSON. */
  readonly bytes: number
}

/** A JSON body, whatever content type it was sent under, except forms; and how many bytes it had. */
export const readDocument = (
  incoming: Incoming,
  limitBytes: number
): Effect.Effect<Document, InvalidRequest | ReceiveFailure> =>
  Effect.gen(function* () {
    yield* requireNoForm(incoming.request)
    const body = yield* readPlain(incoming, limitBytes)
    return { value: yield* parseBody(body), bytes: body.length }
  })

export const readJson = (incoming: Incoming, limitBytes: number) =>
  Effect.map(readDocument(incoming, limitBytes), ({ value }) => value)

const largeForm = 256 * 1024

/** A `multipart/form-data` body, made an object by `fieldsOf`, or a JSON one as `readJson` takes it. */
export const readJsonOrForm = Effect.fnUntraced(function* (
  incoming: Incoming,
  limitBytes: number,
  fieldsOf: (parts: ReadonlyArray<Part>) => JsonObject
) {
  const contentType = typeOf(incoming.request)
  if (!isMultipart(contentType)) return yield* readJson(incoming, limitBytes)
  const body = yield* readPlain(incoming, limitBytes)
  const parts = yield* EventLoop.run(parseForm(contentType, body), body.length > largeForm)
  return fieldsOf(yield* parts)
})
