import { isUtf8 } from "node:buffer"
import { Effect, Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { nestsWithin } from "../../domain/Json.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { refuse } from "./Fields.ts"
import { type JsonLimits, JsonUnreadable, parseJson } from "./JsonParser.ts"

const smallDocument = 64 * 1024

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

const unreadable = ({ reason }: JsonUnreadable): InvalidRequest => refuse(null, explanations[reason])

const byteOrderMark = Buffer.from("\ufeff")

const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark) ? bytes.subarray(byteOrderMark.length) : bytes

const parseSmall = (bytes: Buffer): Either.Either<unknown, JsonUnreadable> => {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"))
    return nestsWithin(bodyLimits.levels, value)
      ? Either.right(value)
      : Either.left(new JsonUnreadable({ reason: "levels" }))
  } catch {
    return Either.left(new JsonUnreadable({ reason: "syntax" }))
  }
}

/** Parses a JSON body; a large one in slices, so that no other request waits for it. */
export const parseBody = (body: Buffer): Effect.Effect<unknown, InvalidRequest> => {
  if (!isUtf8(body)) return refuse(null, "The body is not valid UTF-8.")
  const bytes = withoutMark(body)
  return bytes.length <= smallDocument
    ? Either.mapLeft(parseSmall(bytes), unreadable)
    : EventLoop.inSlices(parseJson(bytes, bodyLimits)).pipe(Effect.flatten, Effect.mapError(unreadable))
}
