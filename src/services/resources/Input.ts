import type { SqlClient, Statement } from "@effect/sql"
import { SchemaAST as AST, Data, Record, Schema } from "effect"
import { moment, momentForms, toFuture } from "../../domain/Moment.ts"
import { type NanoUsd, usdInputs } from "../../domain/Money.ts"
import { refuseUnknownFields, Text, usdWhere } from "./BodyFields.ts"
import { UnixSeconds, Usd } from "./Record.ts"

/** How a surface calls a field of a request, with what it may be: a body by its name, a command by its option. */
type NameField = (field: string, values?: string) => string

/** A field that is wrong beside others, or at this moment. */
export class FieldRefused extends Data.TaggedError("FieldRefused")<{
  readonly field: string
  readonly explain: (name: NameField) => string
}> {}

/** What is said of a value that operators write. */
export interface About {
  /** Without its full stop. */
  readonly description: string
  /** Beside its field in a form. */
  readonly label: string
  /** Over its column in the console's list; without one it has none. */
  readonly column?: string
  /** The field without which a form does not send it. */
  readonly needs?: string
  /** What a form has chosen to begin with. */
  readonly suggested?: string
  /** Whether a form needs it filled. */
  readonly isRequired?: boolean
}

/** What takes a value away: null in bodies, `word` in commands, an empty field in forms. */
interface None {
  readonly word: string
  readonly means: string
}

export interface Form {
  readonly kind: "text" | "integer" | "usd" | "time" | "flag" | "choice" | "choices" | "patterns" | "duration"
  readonly options?: ReadonlyArray<string>
}

/**
 * A value that operators write, said once: `record` is how answers have it, `body` how requests have it, `read` what commands
 * make of a word, `form` how the console asks for it.
 */
export interface Input<Answered extends Schema.Schema.All, Sent extends Schema.Schema.All> extends About {
  readonly record: Answered
  readonly body: Sent
  /** Completes "`field` …". */
  readonly problem: string
  /** Completes "--option must be …". */
  readonly accepts: string
  /** Undefined refuses the word; `now` in Unix milliseconds. */
  readonly read: (word: string, now: number) => Schema.Schema.Type<Sent> | undefined
  readonly form: Form
  readonly none?: None
}

export type Inputs = Readonly<Record<string, Input<Schema.Schema.All, Schema.Schema.All>>>

/** Undefined keeps what is. */
export type Values<Of extends Inputs> = {
  readonly [Name in keyof Of]?: Schema.Schema.Type<Of[Name]["body"]> | undefined
}

type EncodedValues<Of extends Inputs> = {
  readonly [Name in keyof Of]?: Schema.Schema.Encoded<Of[Name]["body"]> | undefined
}

const joinWords = (words: ReadonlyArray<string>, last: "and" | "or") =>
  `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`

export const text = (longest: number, about: About): Input<typeof Schema.String, Schema.Schema<string>> => ({
  ...about,
  record: Schema.String,
  body: Text.pipe(Schema.maxLength(longest)),
  problem: `must be a text of at most ${longest} characters`,
  accepts: `a text of at most ${longest} characters`,
  read: (word) => (word.length > longest ? undefined : word),
  form: { kind: "text" }
})

/** Text with rules of its own, which its service checks. */
export const ruledText = (about: About): Input<typeof Schema.String, typeof Schema.String> => ({
  ...about,
  record: Schema.String,
  body: Schema.String,
  problem: "must be a text",
  accepts: "a text",
  read: (word) => word,
  form: { kind: "text" }
})

export const flag = (about: About): Input<typeof Schema.Boolean, typeof Schema.Boolean> => ({
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
  about: About
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

export const usd = (
  sign: "positive" | "nonNegative",
  about: About
): Input<typeof Usd, Schema.Schema<NanoUsd, number | string>> => {
  const { accepts, holds, problem, read } = usdInputs[sign]
  return { ...about, record: Usd, body: usdWhere(holds), problem, accepts, read, form: { kind: "usd" } }
}

type Words = readonly [string, ...ReadonlyArray<string>]

export const choice = <const Options extends Words>(
  of: Schema.Literal<[...Options]>,
  about: About
): Input<Schema.Literal<[...Options]>, Schema.Literal<[...Options]>> => {
  const isOne = Schema.is(of)
  return {
    ...about,
    description: `${about.description}: ${joinWords(of.literals, "or")}`,
    record: of,
    body: of,
    problem: `must be one of ${of.literals.join(", ")}`,
    accepts: `one of ${of.literals.join(", ")}`,
    read: (word) => (isOne(word) ? word : undefined),
    form: { kind: "choice", options: of.literals }
  }
}

/** Some of the words. */
export const choices = <const Options extends Words>(
  of: Schema.Literal<[...Options]>,
  about: About
): Input<Schema.Array$<Schema.Literal<[...Options]>>, Schema.Schema<ReadonlyArray<Options[number]>>> => {
  const isOne = Schema.is(of)
  const all = joinWords(of.literals, "and")
  return {
    ...about,
    description: `${about.description}, of ${all}`,
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

/** The latest time that a `Date` can hold, in Unix seconds. */
const latest = 8_640_000_000_000

export const time = (about: About): Input<typeof UnixSeconds, Schema.Schema<Date, number>> => ({
  ...about,
  record: UnixSeconds,
  body: Schema.compose(Schema.Int.pipe(Schema.between(0, latest)), UnixSeconds),
  problem: "must be Unix seconds",
  accepts: momentForms,
  read: (word, now) => {
    const when = moment(word)
    return when && new Date(toFuture(when, now))
  },
  form: { kind: "time" }
})

/** A value that can be taken away; answers and bodies have null then. */
export const orNone = <Answered extends Schema.Schema.All, Sent extends Schema.Schema.All>(
  none: None,
  input: Input<Answered, Sent>
): Input<Schema.NullOr<Answered>, Schema.NullOr<Sent>> => ({
  ...input,
  record: Schema.NullOr(input.record),
  body: Schema.NullOr(input.body),
  problem: `${input.problem}, or null for ${none.means}`,
  accepts: `${input.accepts}, or ${none.word}`,
  read: (word, now) => (word.toLowerCase() === none.word ? null : input.read(word, now)),
  none
})

/** As `orNone`, but answers leave the field out then. */
export const orAbsent = <Answered extends Schema.Schema.All, Sent extends Schema.Schema.All>(
  none: None,
  input: Input<Answered, Sent>
): Input<Answered, Schema.NullOr<Sent>> => ({
  ...orNone(none, input),
  record: input.record,
  problem: `${input.problem}, or null`
})

/** A value that goes with another one: null where that is, without a word of its own to take it away. */
export const orNull = <Answered extends Schema.Schema.All, Sent extends Schema.Schema.All>(
  input: Input<Answered, Sent>
): Input<Schema.NullOr<Answered>, Schema.NullOr<Sent>> => ({
  ...input,
  record: Schema.NullOr(input.record),
  body: Schema.NullOr(input.body)
})

/** What requests send of them, and nothing else; each is optional and has one message for every fault. */
export const bodyOf = <Of extends Inputs>(inputs: Of): Schema.Schema<Values<Of>, EncodedValues<Of>> => {
  const properties = Object.entries(inputs).map(([name, { body, description, none, problem }]) => {
    const about = {
      [AST.DescriptionAnnotationId]: `${description}${none === undefined ? "" : `; null: ${none.means}`}.`,
      [AST.MessageAnnotationId]: () => ({ message: `\`${name}\` ${problem}.`, override: true })
    }
    const type = AST.Union.make([AST.annotations(body.ast, about), AST.undefinedKeyword])
    return new AST.PropertySignature(name, type, true, true, about)
  })
  return refuseUnknownFields(Schema.make(new AST.TypeLiteral(properties, [])))
}

interface Patterns {
  /** Without its full stop, such as "ids or patterns like a*". */
  readonly what: string
  readonly pattern: RegExp
  /** In UTF-16 units. */
  readonly longest: number
  readonly most: number
}

/** Some patterns, of which none is empty. */
export const patterns = (
  { longest, most, pattern, what }: Patterns,
  about: About
): Input<Schema.Array$<typeof Schema.String>, Schema.Schema<ReadonlyArray<string>>> => {
  const isOne = (text: string) => text.length <= longest && pattern.test(text)
  const isWithin = (count: number) => count > 0 && count <= most
  const one = Schema.String.pipe(
    Schema.filter(isOne, { jsonSchema: { minLength: 1, maxLength: longest, pattern: pattern.source } })
  )
  const rules = `${what}, at most ${most}, each of at most ${longest} characters`
  return {
    ...about,
    record: Schema.Array(Schema.String),
    body: Schema.Array(one).pipe(
      Schema.filter(({ length }) => isWithin(length), { jsonSchema: { minItems: 1, maxItems: most } })
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

/** In whole seconds, of at most so many days. */
export const duration = (mostDays: number, about: About): Input<typeof Schema.Number, Schema.Schema<number>> => {
  const most = mostDays * daySeconds
  return {
    ...about,
    record: Schema.Number,
    body: Schema.Int.pipe(Schema.between(1, most)),
    problem: `must be an integer of 1 to ${most} seconds`,
    accepts: `a duration such as 90s, 30m, 1h, 7d or 2w, of at most ${mostDays}d`,
    read: (word) => {
      const given = moment(word)
      const seconds = given !== undefined && "distance" in given ? given.distance / 1000 : 0
      return seconds >= 1 && seconds <= most ? seconds : undefined
    },
    form: { kind: "duration" }
  }
}

/** What the console knows of an input; plain data. */
export interface InputDescription extends About {
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

/** Columns hold nano-USD under the name of the field without its unit. */
const columnOf = (field: string): string => field.replace(/_usd$/, "")

/** For a SELECT whose rows have the names of the fields. */
export const selectList = (fields: ReadonlyArray<string>): string =>
  fields.map((field) => (columnOf(field) === field ? field : `${columnOf(field)} AS ${field}`)).join(", ")

interface Assignment {
  readonly column: string
  readonly value: Statement.Fragment
}

const lists: ReadonlySet<Form["kind"]> = new Set(["choices", "patterns"])

/** Undefined values are left out. */
export const assignmentsOf = <Of extends Inputs>(
  sql: SqlClient.SqlClient,
  inputs: Of,
  values: Values<Of>
): ReadonlyArray<Assignment> =>
  Object.entries(inputs).flatMap(([name, { form }]) => {
    const value = values[name]
    if (value === undefined) return []
    return [{ column: columnOf(name), value: lists.has(form.kind) ? sql`${value}::text[]` : sql`${value}` }]
  })
