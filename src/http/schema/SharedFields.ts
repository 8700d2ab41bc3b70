import type { OpenApi } from "@effect/platform"
import { Schema } from "effect"
import {
  Anything,
  atLeast,
  atMost,
  between,
  described,
  Empty,
  Filled,
  Integer,
  optional,
  upTo
} from "../../domain/Constraints.ts"
import { longestPrompt, longestUrl } from "../../domain/Media.ts"
import { isArray, isFilled } from "../body/Guards.ts"
import { problem } from "./Decoding.ts"
import { constantInForm, emptyInForm, inForm } from "./FormFields.ts"

/** A pattern of how web addresses begin, in either case. */
export const httpUrl = "[Hh][Tt][Tt][Pp][Ss]?://"
/** Only URLs are limited: base64 may stand in their place. */
export const urlLimit = { anyOf: [{ not: { pattern: `^${httpUrl}` } }, { maxLength: longestUrl }] }
const urlLength = longestUrl.toLocaleString("en-US")

export const ImageUrl = Filled.annotations({
  jsonSchema: {
    type: "string",
    minLength: 1,
    ...urlLimit,
    description: `An http(s) URL of at most ${urlLength} characters, or \`data:image/…;base64,…\`; PNG, JPEG, WebP or GIF.`
  },
  arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["http", "https"] })
})

export const AnyObject = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  jsonSchema: { type: "object" }
})
export const JsonSchema = AnyObject.annotations({
  jsonSchema: { type: "object", description: "A JSON Schema, at most 100 levels deep." }
})

export const textOr = <A, I>(part: Schema.Schema<A, I>) => Schema.Union(Schema.String, Schema.NonEmptyArray(part))
/** The type of what is none of these. */
export const otherThan = (...known: ReadonlyArray<string>) =>
  Filled.pipe(Schema.filter((type) => !known.includes(type), { jsonSchema: { not: { enum: known } } }))

export const Tokens = Integer.pipe(atLeast(0))
export const UnixSeconds = Integer.annotations({ description: "Unix seconds." })

export const Flag = Schema.Boolean.annotations(problem("must be a boolean"))
export const TokenCap = Integer.pipe(atLeast(1)).annotations(problem("must be an integer of at least 1"))
export const numberFrom = (least: number, most: number) =>
  Schema.Number.pipe(between(least, most)).annotations(problem(`must be a number from ${least} to ${most}`))
export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations(problem(`must be one of ${words.join(", ")}`))
export const samplingOnly = "Ignored by models without sampling parameters."

const maxStops = 16
export const StopTexts = Schema.Array(Filled).pipe(atMost(maxStops))
export const stopsProblem = (otherwise: string) =>
  problem((value) => (isArray(value) && value.every(isFilled) ? `must hold at most ${maxStops} strings` : otherwise))

/** Documents the events of an operation that can stream. */
export const documentEvents = (events: string): Pick<Parameters<typeof OpenApi.annotations>[0], "transform"> => ({
  transform: (operation) => {
    operation.responses[200].content["text/event-stream"] = { schema: { $ref: `#/components/schemas/${events}` } }
    return operation
  }
})

const longest = longestPrompt.toLocaleString("en-US")

/** A form may have sent it as a file, or several times. */
const required = (value: unknown): string => {
  if (value instanceof Uint8Array) return "must be text, not a file"
  return isArray(value) && value.length > 1 ? "must be one text, not several" : "is required"
}

export const modelOf = (kind: string) =>
  Filled.annotations({ ...problem(required), description: `The catalog id of ${kind}.` })

export const promptFor = (description: string) =>
  Filled.pipe(upTo(longestPrompt)).annotations({
    ...problem((value) => (isFilled(value) ? `must have at most ${longest} characters` : required(value))),
    description
  })

const anyUser = (description: string) => described(Anything, description).pipe(inForm(Schema.String))

export const endUser = {
  user: anyUser("Who uses your product: the first 128 characters are kept with the request. No provider sees it."),
  safety_identifier: anyUser("The same, where there is no `user`.")
}

/** A field with one value. */
export const constant = <const A extends number | boolean>(value: A, text: string, description: string) =>
  optional(Schema.Literal(value).annotations(problem(text)), description).pipe(constantInForm(value))

export const n = constant(1, "must be 1", "Only 1.")

export const unsupported = (instead: string) =>
  described(Empty.annotations(problem(`is not supported: ${instead}`)), `Not supported: ${instead}.`).pipe(emptyInForm)
