import type { OpenApi } from "@effect/platform"
import { Option, Record, Schema, SchemaAST } from "effect"
import {
  Anything,
  atLeast,
  atMost,
  between,
  describedField,
  Empty,
  Integer,
  NonEmptyString,
  optional,
  upTo
} from "../../domain/Constraints.ts"
import { maxPromptLength, maxUrlLength } from "../../domain/Media.ts"
import type { ReasoningEffort } from "../../domain/Model.ts"
import { oneOfWords } from "../../domain/Wording.ts"
import { isArray, isNonEmptyString, type JsonObject } from "../body/Guards.ts"
import { formToObject, type Part } from "../body/Multipart.ts"
import { catchRefusal, problem, readWith } from "./Decoding.ts"

type Fields = Schema.Struct.Fields

const formId = Symbol.for("gateway/http/form")
const constantId = Symbol.for("gateway/http/formConstant")

const EmptyText = Schema.Literal("")

/** Also accepts an empty text, which a form sends for an absent field. */
export const allowEmpty = <A, I>(text: Schema.Schema<A, I>) => Schema.Union(text, EmptyText)

/** Sets the schema of a field's text in a form. The default is the JSON field's own schema. */
export const withFormText =
  (text: Schema.Schema.Any) =>
  <S extends Schema.Schema.All>(field: Schema.optional<S>): Schema.optional<S> =>
    field.annotations({ [formId]: text })

/** Documents a field that a form may send only as an empty text. */
const withEmptyFormText = withFormText(EmptyText)

/** Documents a field that accepts one constant: a form sends it as text, such as "1" for 1, or empty. */
const withConstantFormText =
  (value: number | boolean) =>
  <S extends Schema.Schema.All>(field: Schema.optional<S>): Schema.optional<S> =>
    field.annotations({ [formId]: Schema.Literal(String(value), ""), [constantId]: value })

const annotation = (id: symbol, field: Fields[string]): Option.Option<unknown> =>
  Schema.isPropertySignature(field) && field.ast._tag === "PropertySignatureDeclaration"
    ? Option.fromNullable(field.ast.annotations[id])
    : Option.none()

const toFormField = (field: Fields[string]): Fields[string] =>
  annotation(formId, field).pipe(
    Option.filter(Schema.isSchema),
    Option.match({
      onNone: () => field,
      onSome: (text) =>
        Schema.optional(text).annotations({
          description: String(Option.getOrThrow(annotation(SchemaAST.DescriptionAnnotationId, field)))
        })
    })
  )

/** Returns the schema of a form with the fields of a JSON body. `files` replaces the fields that may be files. */
export const toForm = (json: Fields, files: Fields) => Schema.Struct({ ...Record.map(json, toFormField), ...files })

/** Converts a form to the JSON body that means the same. Texts of constants become the constants. */
export const formToJson = (json: Fields, parts: ReadonlyArray<Part>): JsonObject => {
  const body = formToObject(parts)
  const constants = Record.filterMap(json, (field, name) =>
    Option.filter(annotation(constantId, field), (value) => String(value) === body[name])
  )
  return { ...body, ...constants }
}

export const httpUrlPattern = "[Hh][Tt][Tt][Pp][Ss]?://"
/** A maximum length that applies only to URLs, because the field may contain base64 instead. */
export const urlLimit = { anyOf: [{ not: { pattern: `^${httpUrlPattern}` } }, { maxLength: maxUrlLength }] }
export const maxUrlLengthText = maxUrlLength.toLocaleString("en-US")

export const ImageUrl = NonEmptyString.annotations({
  jsonSchema: {
    type: "string",
    minLength: 1,
    ...urlLimit,
    description: `An http(s) URL of at most ${maxUrlLengthText} characters, or \`data:image/…;base64,…\`; PNG, JPEG, WebP or GIF.`
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
export const otherThan = (...types: ReadonlyArray<string>) =>
  NonEmptyString.pipe(Schema.filter((type) => !types.includes(type), { jsonSchema: { not: { enum: types } } }))

export const Tokens = Integer.pipe(atLeast(0))
export const UnixSeconds = Integer.annotations({ description: "Unix seconds." })

export const mustBeObject = problem("must be an object")
export const Text = Schema.String.annotations(problem("must be a string"))
export const Flag = Schema.Boolean.annotations(problem("must be a boolean"))
export const streamField = optional(Flag, "Whether the response is a stream of server-sent events. Default false.")
export const parallelCallsField = optional(Flag, "Whether one response may contain several tool calls.")
export const Arguments = Schema.String.annotations({ description: "JSON text, as the model wrote it." })
export const TokenCap = Integer.pipe(atLeast(1)).annotations(problem("must be an integer of at least 1"))
export const numberFrom = (min: number, max: number) =>
  Schema.Number.pipe(between(min, max)).annotations(problem(`must be a number from ${min} to ${max}`))

/** Returns the end of an error message: `must be one of a, b, c`. Schemas and hand-written readers share it. */
export const mustBeOneOf = (words: ReadonlyArray<string>): string => `must be ${oneOfWords(words)}`
export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  Schema.Literal(...words).annotations(problem(mustBeOneOf(words)))

interface Literals {
  readonly literals: ReadonlyArray<string>
}
/** Returns all values that `type` may have in these schemas. */
export const typesOf = (...objects: ReadonlyArray<{ readonly fields: { readonly type: Literals } }>) =>
  objects.flatMap(({ fields }) => fields.type.literals)
/** Returns the end of the error message for a `role` that none of these message schemas has. */
export const roleProblem = (...messages: ReadonlyArray<{ readonly fields: { readonly role: Literals } }>): string =>
  mustBeOneOf(messages.flatMap(({ fields }) => fields.role.literals))

/** The end of the error message for a missing or empty conversation. */
export const conversationProblem = "is required and must be a non-empty array"
/** `http/chat/ChatBody.ts` explains why `read` is written by hand. */
export const conversationField = <A>(read: (messages: ReadonlyArray<unknown>) => A) =>
  readWith(Schema.Array(Schema.Unknown).pipe(Schema.minItems(1)), catchRefusal(read)).annotations(
    problem(conversationProblem)
  )

/** Returns the nearest effort that the gateway knows, or undefined for `none`, which turns reasoning off. */
export const toReasoningEffort = (
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
export const samplingNote = "Ignored by models without sampling parameters."

const maxStops = 16
export const StopTexts = Schema.Array(NonEmptyString).pipe(atMost(maxStops))
export const stopsProblem = (otherwise: string) =>
  problem((value) =>
    isArray(value) && value.every(isNonEmptyString) ? `must hold at most ${maxStops} strings` : otherwise
  )

/** Adds the schema `events` to an operation's document, as the content of its stream. */
export const documentEvents = (events: string): Pick<Parameters<typeof OpenApi.annotations>[0], "transform"> => ({
  transform: (operation) => {
    operation.responses[200].content["text/event-stream"] = { schema: { $ref: `#/components/schemas/${events}` } }
    return operation
  }
})

const maxLength = maxPromptLength.toLocaleString("en-US")

/** Returns the end of the error message for a field that is not text: in a form it may be a file, or repeated. */
const explainMissingText = (value: unknown): string => {
  if (value instanceof Uint8Array) return "must be text, not a file"
  return isArray(value) && value.length > 1 ? "must be one text, not several" : "is required"
}

export const modelField = (kind: string) =>
  NonEmptyString.annotations({ ...problem(explainMissingText), description: `The catalog id of ${kind}.` })

export const promptField = (description: string) =>
  NonEmptyString.pipe(upTo(maxPromptLength)).annotations({
    ...problem((value) =>
      isNonEmptyString(value) ? `must have at most ${maxLength} characters` : explainMissingText(value)
    ),
    description
  })

const userField = (description: string) => describedField(Anything, description).pipe(withFormText(Schema.String))

export const endUserFields = {
  user: userField("Your end user. The first 128 characters are stored with the request. Providers do not receive it."),
  safety_identifier: userField("Used instead if `user` is absent.")
}

export const constantField = <const A extends number | boolean>(value: A, text: string, description: string) =>
  optional(Schema.Literal(value).annotations(problem(text)), description).pipe(withConstantFormText(value))

export const n = constantField(1, "must be 1", "Must be 1.")

export const refusedField = (instead: string) =>
  describedField(Empty.annotations(problem(`is not supported: ${instead}`)), `Not supported: ${instead}.`).pipe(
    withEmptyFormText
  )
