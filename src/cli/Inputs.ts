import { Args, Command, HelpDoc, Options, ValidationError } from "@effect/cli"
import { Clock, Effect, Option, Predicate, Record, Schema } from "effect"
import {
  duration,
  durationForms,
  momentForms,
  type PastMoment,
  pastForms,
  pastMoment,
  toPast
} from "../domain/Moment.ts"
import type { FieldRefused } from "../services/resources/Input.ts"
import { bodyOf, type Form, type Input, type Inputs, type Values } from "../services/resources/Input.ts"
import { CommandFailed } from "./CommandFailed.ts"

export const word = (name: string, description: string) => Args.text({ name }).pipe(Args.withDescription(description))

export const flag = (name: string, description: string) =>
  Options.boolean(name).pipe(Options.withDescription(description))

export const json = flag("json", "print one JSON document and nothing else")
export const csv = flag("csv", "print comma-separated values")

export const orgArgument = word("ORG", "an organization's id or name")

const placeholders: Readonly<Record<string, string>> = {
  amount: "USD",
  "base-url": "URL",
  by: "COLUMNS",
  columns: "NAMES",
  credits: "USD",
  feed: "FILE",
  limit: "N",
  month: "MONTH",
  note: "TEXT",
  "older-than": "DURATION",
  since: "WHEN",
  tolerance: "PERCENT",
  until: "WHEN",
  workers: "N"
}

export const text = (name: string, placeholder = placeholders[name] ?? name.toUpperCase()) =>
  Options.text(name).pipe(Options.withPseudoName(placeholder))

export const orgOption = text("org").pipe(Options.withDescription("an organization's id or name"))

/** Returns undefined to refuse the text; null is a value, which removes a limit. `now` is in Unix milliseconds. */
type Parse<A> = (text: string, now: number) => A | undefined

const parseWith =
  <A>(name: string, accepts: string, parse: Parse<A>) =>
  (text: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const value = parse(text, now)
      return value === undefined ? Effect.fail(HelpDoc.p(`${name} must be ${accepts}.`)) : Effect.succeed(value)
    })

export const option = <A>(name: string, accepts: string, parse: Parse<A>, placeholder?: string) =>
  text(name, placeholder).pipe(
    Options.mapEffect((word) =>
      Effect.mapError(parseWith(`--${name}`, accepts, parse)(word), ValidationError.invalidValue)
    )
  )

export const argument = <A>(name: string, accepts: string, parse: Parse<A>) =>
  Args.text({ name }).pipe(Args.withDescription(accepts), Args.mapEffect(parseWith(name, accepts, parse)))

export const optional = <A>(option: Options.Options<A>, description: string) =>
  option.pipe(Options.withDescription(description), Options.optional, Options.map(Option.getOrUndefined))

export const orgFilter = optional(text("org"), "an organization's id or name; default: all")

const momentOption = (name: string, description: string) => optional(option(name, pastForms, pastMoment), description)

export const period = {
  since: momentOption("since", `from when: ${pastForms}; days and months are UTC; default: the oldest that is kept`),
  until: momentOption("until", "up to and not including when; default: now")
}

export const olderThan = optional(
  option("older-than", durationForms, duration),
  "only those that have been open for so long, such as 10m; default: all"
)

type Period = { readonly [Name in keyof typeof period]: PastMoment | undefined }

export const readPeriod = Effect.fnUntraced(function* (given: Period) {
  const now = yield* Clock.currentTimeMillis
  const since = given.since && toPast(given.since, now)
  const until = given.until && toPast(given.until, now)
  if (since !== undefined && until !== undefined && since >= until) {
    return yield* new CommandFailed({ message: "--since must be before --until." })
  }
  return { since, until }
})

export const oneOf = <A extends string>(name: string, words: ReadonlyArray<A>) =>
  option(name, `one of ${words.join(", ")}`, (text) => words.find((word) => word === text))

export const group = (name: string, description: string) =>
  Command.make(name, {}, () => {
    const message = `gateway ${name} needs one of its commands; see gateway ${name} --help.`
    return new CommandFailed({ message })
  }).pipe(Command.withDescription(description))

export const whole =
  (from: number, to = 2_147_483_647) =>
  (text: string) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    return number >= from && number <= to ? number : undefined
  }

export const filledTo = (longest: number) => (text: string) =>
  text.trim() === "" || text.length > longest ? undefined : text

export const limit = (most: number, description: string) =>
  option("limit", `an integer from 1 to ${most}`, whole(1, most)).pipe(
    Options.withDescription(`${description}; default: 100`),
    Options.withDefault(100)
  )

/** Undefined where the option is not given. */
export const optionalLimit = (most: number, description: string) =>
  optional(option("limit", `an integer from 1 to ${most}`, whole(1, most)), description)

export const optionName = (field: string): string => field.replace(/_(usd|at|seconds)$/, "").replaceAll("_", "-")

const formPlaceholders: Partial<Record<Form["kind"], string>> = {
  duration: "TIME",
  flag: "on|off",
  integer: "N",
  patterns: "LIST",
  time: "WHEN",
  usd: "USD"
}

const placeholderOf = (name: string, { kind }: Form) =>
  formPlaceholders[kind] ?? name.slice(name.lastIndexOf("-") + 1).toUpperCase()

const formsOf = ({ kind, options = [] }: Form): string => {
  if (kind === "time") return `: ${momentForms}`
  if (kind === "duration") return ", such as 24h or 7d"
  if (kind === "patterns") return ", with commas between"
  return kind === "choices" ? `, such as ${options.slice(0, 2).join(",")}` : ""
}

/** What becomes of a value whose option is left out. */
type LeftOut = "none" | "kept"

const describe = ({ description, form, none }: Inputs[string], leftOut: LeftOut): string => {
  const about = description.charAt(0).toLowerCase() + description.slice(1) + formsOf(form)
  if (none === undefined) return about
  return `${about}, or ${none.word}${leftOut === "none" ? `; if left out: ${none.word}` : ""}`
}

/** An option that has to be given. */
export const inputOption = <Answered extends Schema.Schema.All, Sent extends Schema.Schema.All>(
  name: string,
  input: Input<Answered, Sent>
): Options.Options<Schema.Schema.Type<Sent>> => option(name, input.accepts, input.read, placeholderOf(name, input.form))

const optionalOf = (field: string, input: Inputs[string], leftOut: LeftOut) =>
  inputOption(optionName(field), input).pipe(
    Options.withDescription(describe(input, leftOut)),
    Options.optional,
    Options.map(Option.getOrUndefined)
  )

/** An option for each value that operators write; none has to be given. */
export const inputOptions = <Of extends Inputs>(inputs: Of, leftOut: LeftOut): Options.Options<Values<Of>> => {
  const isValid = Schema.is(bodyOf(inputs))
  return Options.all(Record.map(inputs, (input, field) => optionalOf(field, input, leftOut))).pipe(
    Options.filterMap((given) => Option.liftPredicate(isValid)(given), "An option is wrong.")
  )
}

/** Changing nothing is a mistake. */
export const requireChange = (given: object) =>
  Object.values(given).every(Predicate.isUndefined)
    ? new CommandFailed({ message: "Nothing to change: give at least one option." })
    : Effect.void

/** As commands name their options. */
export const explainRefused = ({ explain }: FieldRefused) =>
  new CommandFailed({
    message: explain((field, values) => `--${optionName(field)}${values === undefined ? "" : ` ${values}`}`)
  })
