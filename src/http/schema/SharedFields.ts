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
import type { ReasoningEffort } from "../../domain/Model.ts"
import { isArray, isFilled } from "../body/Guards.ts"
import { problem, reading, readWith } from "./Decoding.ts"
import { constantInForm, emptyInForm, inForm } from "./FormFields.ts"

/** A pattern of how web addresses begin, in either case. */
export const httpUrl = "[Hh][Tt][Tt][Pp][Ss]?://"
/** Only URLs are limited: base64 may stand in their place. */
export const urlLimit = { anyOf: [{ not: { pattern: `^${httpUrl}` } }, { maxLength: longestUrl }] }
export const urlLength = longestUrl.toLocaleString("en-US")

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

export const anObject = problem("must be an object")
export const Text = Schema.String.annotations(problem("must be a string"))
export const Flag = Schema.Boolean.annotations(problem("must be a boolean"))
export const streamField = optional(Flag, "Default false; true answers with server-sent events.")
export const parallelCallsField = optional(Flag, "Whether one answer may hold several tool calls.")
/** The arguments of a tool call. */
export const Arguments = Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
export const TokenCap = Integer.pipe(atLeast(1)).annotations(problem("must be an integer of at least 1"))
export const numberFrom = (least: number, most: number) =>
  Schema.Number.pipe(between(least, most)).annotations(problem(`must be a number from ${least} to ${most}`))

/** Also said by readers by hand, whose words are those of the document. */
export const mustBeOneOf = (words: ReadonlyArray<string>): string => `must be one of ${words.join(", ")}`
export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations(problem(mustBeOneOf(words)))

interface OneOfWords {
  readonly literals: ReadonlyArray<string>
}
/** The words that the `type` of these objects may be. */
export const typesOf = (...objects: ReadonlyArray<{ readonly fields: { readonly type: OneOfWords } }>) =>
  objects.flatMap(({ fields }) => fields.type.literals)
/** What the `role` of a message must be, which is one of these. */
export const roleProblem = (...messages: ReadonlyArray<{ readonly fields: { readonly role: OneOfWords } }>): string =>
  mustBeOneOf(messages.flatMap(({ fields }) => fields.role.literals))

/** Completes the refusal of a conversation. */
export const conversationProblem = "is required and must be a non-empty array"
/** A conversation that is read by hand; see `http/chat/ChatBody.ts`. */
export const conversationOf = <A>(read: (messages: ReadonlyArray<unknown>) => A) =>
  readWith(Schema.Array(Schema.Unknown).pipe(Schema.minItems(1)), reading(read)).annotations(
    problem(conversationProblem)
  )

/** `none` asks for no reasoning, `minimal` for the least that there is, and `max` for the most. */
export const effortOf = (
  word: ReasoningEffort | "none" | "minimal" | "max" | null | undefined
): ReasoningEffort | undefined => {
  switch (word) {
    case "none":
    case null:
      return undefined
    case "minimal":
      return "low"
    case "max":
      return "xhigh"
    default:
      return word
  }
}
export const Retention = oneOf("in_memory", "24h")
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
