import type { SqlClient, Statement } from "@effect/sql"
import { SchemaAST as AST, Data, ParseResult, Record, Schema } from "effect"
import { moment, momentForms, toFuture } from "../../domain/Moment.ts"
import { NanoUsd, parseEnteredUsd, toUsd, usdInputs } from "../../domain/Money.ts"
import { isPercent } from "../../domain/Percent.ts"
import { findNearest, joinWords, oneOfWords } from "../../domain/Wording.ts"
import { rowSchema, UnixSeconds, Usd } from "./ResourceRecord.ts"

const maxEdits = ({ length }: string): number => (length < 4 ? 0 : length < 7 ? 1 : 2)

/** Returns the most similar name, or one that continues the text with a unit: in commands `grace_seconds` is `grace`. */
const findSuggestion = (text: string, names: ReadonlyArray<string>): string | undefined =>
  findNearest(text, names, maxEdits)[0] ?? names.find((name) => name.startsWith(`${text}_`))

const explainUnknownField = (name: string, known: ReadonlyArray<string>): string => {
  const suggestion = findSuggestion(name, known)
  return suggestion === undefined
    ? `Unknown field \`${name}\`.`
    : `Unknown field \`${name}\`; did you mean \`${suggestion}\`?`
}

const explainUnexpected = (issue: ParseResult.ParseIssue, known: ReadonlyArray<string>): ParseResult.ParseIssue => {
  if (issue._tag === "Composite" && "_tag" in issue.issues) {
    return new ParseResult.Composite(issue.ast, issue.actual, explainUnexpected(issue.issues, known), issue.output)
  }
  if (issue._tag !== "Pointer" || issue.issue._tag !== "Unexpected") return issue
  const message = explainUnknownField(String(issue.path), known)
  return new ParseResult.Pointer(issue.path, issue.actual, new ParseResult.Unexpected(issue.issue.actual, message))
}

/** Refuses unknown fields before any other check, and suggests the nearest known one. */
export const refuseUnknownFields = <A, I, R>(body: Schema.Schema<A, I, R>): Schema.Schema<A, I, R> => {
  const known = AST.getPropertySignatures(body.ast).map(({ name }) => String(name))
  return body.annotations({
    jsonSchema: { additionalProperties: false },
    parseOptions: { onExcessProperty: "error" },
    decodingFallback: (issue) => ParseResult.fail(explainUnexpected(issue, known))
  })
}

/** A body field with one message for every problem. */
export const field = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) => {
  const message = `\`${name}\` ${problem}.`
  return Schema.propertySignature(
    schema.annotations({ description, message: () => ({ message, override: true }) })
  ).annotations({ description, missingMessage: () => message })
}

export const optionalField = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })

/** A body with exactly these fields. */
export const body = <Fields extends Schema.Struct.Fields>(fields: Fields) => refuseUnknownFields(Schema.Struct(fields))

/** Text that PostgreSQL can store. */
export const Text = Schema.String.pipe(Schema.filter((text) => !/[\0\p{Cs}]/u.test(text), { jsonSchema: {} }))

export const filledTo = (maxLength: number) =>
  Text.pipe(Schema.filter((text) => text.trim() !== "" && text.length <= maxLength, { jsonSchema: { maxLength } }))

const textOf = (usd: number | string): string => {
  if (typeof usd === "string") return usd
  const text = String(usd)
  return text.includes("e") ? usd.toFixed(12) : text
}

/** Decodes USD with at most nine decimals to nano-USD. Accepts a number, or text for more precision. */
export const usdWhere = (isValid: (amount: NanoUsd) => boolean) =>
  Schema.transformOrFail(
    Schema.Union(Schema.Number, Schema.String),
    Schema.BigIntFromSelf.pipe(Schema.fromBrand(NanoUsd)),
    {
      strict: true,
      decode: (usd, _, ast) => {
        const nano = parseEnteredUsd(textOf(usd))
        return nano !== undefined && isValid(nano)
          ? ParseResult.succeed(nano)
          : ParseResult.fail(new ParseResult.Type(ast, usd))
      },
      encode: (nano) => ParseResult.succeed(toUsd(nano))
    }
  ).annotations({ jsonSchema: { type: ["number", "string"] } })

/** Returns the name of a field with its possible values: its key in bodies, its option in commands. */
type NameField = (field: string, values?: string) => string

/** A field that conflicts with another field or with the current state. */
export class FieldRefused extends Data.TaggedError("FieldRefused")<{
  readonly field: string
  readonly explain: (name: NameField) => string
}> {}

/** The texts about an operator's input. */
export interface InputInfo {
  /** Without its full stop. */
  readonly description: string
  /** The label in forms. */
  readonly label: string
  /** The heading of its column in the console; absent: no column. */
  readonly column?: string
  /** Forms send this input only if that field is set. */
  readonly needs?: string
  /** The initial value in forms. */
  readonly suggested?: string
  /** Whether forms require it. */
  readonly isRequired?: boolean
}

/** How to remove a value: null in bodies, `word` in commands, an empty field in forms. */
interface None {
  readonly word: string
  readonly means: string
}

export interface Form {
  readonly kind:
    | "text"
    | "integer"
    | "percent"
    | "usd"
    | "time"
    | "flag"
    | "choice"
    | "choices"
    | "patterns"
    | "duration"
  readonly options?: ReadonlyArray<string>
}

/**
 * An operator's input, defined once for the admin API, the commands and the console. `record`: its schema in responses.
 * `body`: its schema in requests. `read`: parses a command's argument. `form`: its field in the console.
 */
export interface Input<RecordSchema extends Schema.Schema.All, BodySchema extends Schema.Schema.All> extends InputInfo {
  readonly record: RecordSchema
  readonly body: BodySchema
  /** Completes "`field` …". */
  readonly problem: string
  /** Completes "--option must be …". */
  readonly accepts: string
  /** Returns undefined to refuse the argument. `now` is in Unix milliseconds. */
  readonly read: (word: string, now: number) => Schema.Schema.Type<BodySchema> | undefined
  readonly form: Form
  readonly none?: None
}

export type Inputs = Readonly<Record<string, Input<Schema.Schema.All, Schema.Schema.All>>>

/** The decoded values. An undefined one keeps the current value. */
export type Values<Of extends Inputs> = {
  readonly [Name in keyof Of]?: Schema.Schema.Type<Of[Name]["body"]> | undefined
}

type EncodedValues<Of extends Inputs> = {
  readonly [Name in keyof Of]?: Schema.Schema.Encoded<Of[Name]["body"]> | undefined
}

export const text = (maxLength: number, about: InputInfo): Input<typeof Schema.String, Schema.Schema<string>> => ({
  ...about,
  record: Schema.String,
  body: Text.pipe(Schema.maxLength(maxLength)),
  problem: `must be a string of at most ${maxLength} characters`,
  accepts: `a text of at most ${maxLength} characters`,
  read: (word) => (word.length > maxLength ? undefined : word),
  form: { kind: "text" }
})

/** Text of any form, which the service checks. */
export const ruledText = (about: InputInfo): Input<typeof Schema.String, typeof Schema.String> => ({
  ...about,
  record: Schema.String,
  body: Schema.String,
  problem: "must be a string",
  accepts: "a text",
  read: (word) => word,
  form: { kind: "text" }
})

export const flag = (about: InputInfo): Input<typeof Schema.Boolean, typeof Schema.Boolean> => ({
  ...about,
  record: Schema.Boolean,
  body: Schema.Boolean,
  problem: "must be true or false",
  accepts: "one of on, off",
  read: (word) => (word === "on" || word === "off" ? word === "on" : undefined),
  form: { kind: "flag" }
})

export const integer = (
  from: number,
  to: number,
  about: InputInfo
): Input<typeof Schema.Number, Schema.Schema<number>> => ({
  ...about,
  record: Schema.Number,
  body: Schema.Int.pipe(Schema.between(from, to)),
  problem: `must be an integer of at least ${from}`,
  accepts: `an integer from ${from} to ${to}`,
  read: (word) => {
    const number = /^\d+$/.test(word) ? Number(word) : Number.NaN
    return number >= from && number <= to ? number : undefined
  },
  form: { kind: "integer" }
})

/** With at most two decimals. */
export const percent = (
  from: number,
  to: number,
  about: InputInfo
): Input<typeof Schema.Number, Schema.Schema<number>> => {
  const rule = `a percentage from ${from} to ${to} with at most two decimals`
  const isValid = (value: number) => value >= from && value <= to && isPercent(value)
  return {
    ...about,
    record: Schema.Number,
    body: Schema.Number.pipe(Schema.filter(isValid, { jsonSchema: { minimum: from, maximum: to } })),
    problem: `must be ${rule}`,
    accepts: rule,
    read: (word) => {
      const value = /^-?\d+(\.\d+)?$/.test(word) ? Number(word) : Number.NaN
      return isValid(value) ? value : undefined
    },
    form: { kind: "percent" }
  }
}

export const usd = (
  sign: "positive" | "nonNegative",
  about: InputInfo
): Input<typeof Usd, Schema.Schema<NanoUsd, number | string>> => {
  const { accepts, isValid, problem, read } = usdInputs[sign]
  return { ...about, record: Usd, body: usdWhere(isValid), problem, accepts, read, form: { kind: "usd" } }
}

type Words = readonly [string, ...ReadonlyArray<string>]

export const choice = <const Options extends Words>(
  of: Schema.Literal<[...Options]>,
  about: InputInfo
): Input<Schema.Literal<[...Options]>, Schema.Literal<[...Options]>> => {
  const isOne = Schema.is(of)
  return {
    ...about,
    description: `${about.description}: ${joinWords(of.literals, "or")}`,
    record: of,
    body: of,
    problem: `must be ${oneOfWords(of.literals)}`,
    accepts: oneOfWords(of.literals),
    read: (word) => (isOne(word) ? word : undefined),
    form: { kind: "choice", options: of.literals }
  }
}

/** A list of one or more of the words. */
export const choices = <const Options extends Words>(
  of: Schema.Literal<[...Options]>,
  about: InputInfo
): Input<Schema.Array$<Schema.Literal<[...Options]>>, Schema.Schema<ReadonlyArray<Options[number]>>> => {
  const isOne = Schema.is(of)
  const all = joinWords(of.literals, "and")
  return {
    ...about,
    description: `${about.description}: ${of.literals.join(", ")}`,
    record: Schema.Array(of),
    body: Schema.Array(of).pipe(Schema.filter((items) => items.length > 0, { jsonSchema: { minItems: 1 } })),
    problem: `must be a list of ${all}`,
    accepts: `a comma-separated list of ${all}`,
    read: (word) => {
      const items = [...new Set(word.split(",").map((item) => item.trim()))]
      return items.every(isOne) ? items : undefined
    },
    form: { kind: "choices", options: of.literals }
  }
}

/** The maximum of `Date`, in Unix seconds. */
const maxUnixSeconds = 8_640_000_000_000

export const time = (about: InputInfo): Input<typeof UnixSeconds, Schema.Schema<Date, number>> => ({
  ...about,
  record: UnixSeconds,
  body: Schema.compose(Schema.Int.pipe(Schema.between(0, maxUnixSeconds)), UnixSeconds),
  problem: "must be Unix seconds",
  accepts: momentForms,
  read: (word, now) => {
    const when = moment(word)
    return when && new Date(toFuture(when, now))
  },
  form: { kind: "time" }
})

/** An input whose value can be removed. In responses and request bodies a removed value is null. */
export const orNone = <RecordSchema extends Schema.Schema.All, BodySchema extends Schema.Schema.All>(
  none: None,
  input: Input<RecordSchema, BodySchema>
): Input<Schema.NullOr<RecordSchema>, Schema.NullOr<BodySchema>> => ({
  ...input,
  record: Schema.NullOr(input.record),
  body: Schema.NullOr(input.body),
  problem: `${input.problem}, or null for ${none.means}`,
  accepts: `${input.accepts}, or ${none.word}`,
  read: (word, now) => (word.toLowerCase() === none.word ? null : input.read(word, now)),
  none
})

/** As `orNone`, but responses omit a removed value. */
export const orAbsent = <RecordSchema extends Schema.Schema.All, BodySchema extends Schema.Schema.All>(
  none: None,
  input: Input<RecordSchema, BodySchema>
): Input<RecordSchema, Schema.NullOr<BodySchema>> => ({
  ...orNone(none, input),
  record: input.record,
  problem: `${input.problem}, or null`
})

/** An input that is null if the input on which it depends is null, so commands need no word to remove it. */
export const orNull = <RecordSchema extends Schema.Schema.All, BodySchema extends Schema.Schema.All>(
  input: Input<RecordSchema, BodySchema>
): Input<Schema.NullOr<RecordSchema>, Schema.NullOr<BodySchema>> => ({
  ...input,
  record: Schema.NullOr(input.record),
  body: Schema.NullOr(input.body)
})

/** Returns the schema of a request body with the inputs. Every field is optional and has one message for every problem. */
export const bodyOf = <Of extends Inputs>(inputs: Of): Schema.Schema<Values<Of>, EncodedValues<Of>> => {
  const properties = Object.entries(inputs).map(([name, { body, description, none, problem }]) => {
    const about = {
      [AST.DescriptionAnnotationId]: `${description}.${none === undefined ? "" : ` Null means ${none.means}.`}`,
      [AST.MessageAnnotationId]: () => ({ message: `\`${name}\` ${problem}.`, override: true })
    }
    const type = AST.Union.make([AST.annotations(body.ast, about), AST.undefinedKeyword])
    return new AST.PropertySignature(name, type, true, true, about)
  })
  return refuseUnknownFields(Schema.make(new AST.TypeLiteral(properties, [])))
}

type Present<Of extends Inputs> = {
  readonly [Name in keyof Of]?: NonNullable<Schema.Schema.Type<Of[Name]["record"]>>
}

const withoutNull = (ast: AST.AST): AST.AST =>
  AST.isUnion(ast) ? AST.Union.make(ast.types.filter((type) => !AST.isLiteral(type) || type.literal !== null)) : ast

/** Returns the schema of rows with a column per input. Null columns become absent. */
export const presentIn = <Of extends Inputs>(inputs: Of): Schema.Schema<Present<Of>, unknown> => {
  const columns = Object.entries(inputs).map(
    ([name, { record }]) => new AST.PropertySignature(name, withoutNull(record.ast), true, true)
  )
  return rowSchema(Schema.make<Present<Of>>(new AST.TypeLiteral(columns, [])))
}

interface Patterns {
  /** Without its full stop, such as "ids or patterns like a*". */
  readonly what: string
  readonly pattern: RegExp
  /** In UTF-16 units. */
  readonly maxLength: number
  readonly maxItems: number
}

/** A list of one or more patterns. */
export const patterns = (
  { maxItems, maxLength, pattern, what }: Patterns,
  about: InputInfo
): Input<Schema.Array$<typeof Schema.String>, Schema.Schema<ReadonlyArray<string>>> => {
  const isOne = (text: string) => text.length <= maxLength && pattern.test(text)
  const isWithin = (count: number) => count > 0 && count <= maxItems
  const one = Schema.String.pipe(
    Schema.filter(isOne, { jsonSchema: { minLength: 1, maxLength, pattern: pattern.source } })
  )
  const rules = `${what}, at most ${maxItems}, each of at most ${maxLength} characters`
  return {
    ...about,
    record: Schema.Array(Schema.String),
    body: Schema.Array(one).pipe(
      Schema.filter(({ length }) => isWithin(length), { jsonSchema: { minItems: 1, maxItems } })
    ),
    problem: `must be a list of ${rules}`,
    accepts: `a comma-separated list of ${rules}`,
    read: (word) => {
      const items = [...new Set(word.split(",").map((item) => item.trim()))]
      return isWithin(items.length) && items.every(isOne) ? items : undefined
    },
    form: { kind: "patterns" }
  }
}

const daySeconds = 86_400

/** A duration in whole seconds, of at most `maxDays`. */
export const duration = (maxDays: number, about: InputInfo): Input<typeof Schema.Number, Schema.Schema<number>> => {
  const max = maxDays * daySeconds
  return {
    ...about,
    record: Schema.Number,
    body: Schema.Int.pipe(Schema.between(1, max)),
    problem: `must be an integer from 1 to ${max} seconds`,
    accepts: `a duration such as 90s, 30m, 1h, 7d or 2w, of at most ${maxDays}d`,
    read: (word) => {
      const parsed = moment(word)
      const seconds = parsed !== undefined && "distance" in parsed ? parsed.distance / 1000 : 0
      return seconds >= 1 && seconds <= max ? seconds : undefined
    },
    form: { kind: "duration" }
  }
}

/** What the console needs to know about an input, as plain JSON. */
export interface InputDescription extends InputInfo {
  readonly name: string
  readonly form: Form
  readonly none?: string
}

export const describeInputs = (inputs: Inputs): ReadonlyArray<InputDescription> =>
  Object.entries(inputs).map(([name, { column, description, form, isRequired, label, needs, none, suggested }]) => ({
    name,
    description,
    label,
    form,
    ...(column !== undefined && { column }),
    ...(needs !== undefined && { needs }),
    ...(suggested !== undefined && { suggested }),
    ...(isRequired !== undefined && { isRequired }),
    ...(none !== undefined && { none: none.means })
  }))

/** Returns the column of a field. Columns store nano-USD, so their names have no `_usd`. */
const columnOf = (field: string): string => field.replace(/_usd$/, "")

/** Returns the column list of a SELECT, with each column named as its field. */
export const selectList = (fields: ReadonlyArray<string>): string =>
  fields.map((field) => (columnOf(field) === field ? field : `${columnOf(field)} AS ${field}`)).join(", ")

interface Assignment {
  readonly column: string
  readonly value: Statement.Fragment
}

const listKinds: ReadonlySet<Form["kind"]> = new Set(["choices", "patterns"])

/** Returns an assignment for each defined value. */
export const assignmentsOf = <Of extends Inputs>(
  sql: SqlClient.SqlClient,
  inputs: Of,
  values: Values<Of>
): ReadonlyArray<Assignment> =>
  Object.entries(inputs).flatMap(([name, { form }]) => {
    const value = values[name]
    if (value === undefined) return []
    return [{ column: columnOf(name), value: listKinds.has(form.kind) ? sql`${value}::text[]` : sql`${value}` }]
  })
