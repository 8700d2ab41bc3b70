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
import { oneOfWords } from "../domain/Wording.ts"
import { UsageError } from "../ExitCode.ts"
import {
  bodyOf,
  type FieldRefused,
  type Form,
  type Input,
  type Inputs,
  type Values
} from "../services/resources/ResourceInput.ts"

export const word = (name: string, description: string) => Args.text({ name }).pipe(Args.withDescription(description))

export const flag = (name: string, description: string) =>
  Options.boolean(name).pipe(Options.withDescription(description))

export const json = flag("json", "print JSON instead of text")
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

/** Returns undefined for an invalid text, and null for a word that removes a limit. `now` is in Unix milliseconds. */
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
  since: momentOption("since", `start time: ${pastForms}; days and months are in UTC; default: the oldest record`),
  until: momentOption("until", "end time, exclusive; default: now")
}

export const olderThan = optional(
  option("older-than", durationForms, duration),
  "show only holds older than this, such as 10m; default: all"
)

type Period = { readonly [Name in keyof typeof period]: PastMoment | undefined }

export const readPeriod = Effect.fnUntraced(function* (input: Period) {
  const now = yield* Clock.currentTimeMillis
  const since = input.since && toPast(input.since, now)
  const until = input.until && toPast(input.until, now)
  if (since !== undefined && until !== undefined && since >= until) {
    return yield* new UsageError({ message: "--since must be before --until." })
  }
  return { since, until }
})

export const oneOf = <A extends string>(name: string, words: ReadonlyArray<A>) =>
  option(name, oneOfWords(words), (text) => words.find((word) => word === text))

export const group = (name: string, description: string) =>
  Command.make(name).pipe(Command.withDescription(description))

export const integerIn =
  (from: number, to = 2_147_483_647) =>
  (text: string) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    return number >= from && number <= to ? number : undefined
  }

export const nonBlank = (maxLength: number) => (text: string) =>
  text.trim() === "" || text.length > maxLength ? undefined : text

export const limit = (max: number, description: string) =>
  option("limit", `an integer from 1 to ${max}`, integerIn(1, max)).pipe(
    Options.withDescription(`${description}; default: 100`),
    Options.withDefault(100)
  )

/** Returns undefined if the option is missing. */
export const optionalLimit = (max: number, description: string) =>
  optional(option("limit", `an integer from 1 to ${max}`, integerIn(1, max)), description)

export const optionName = (field: string): string =>
  field.replace(/_(usd|percent|at|seconds)$/, "").replaceAll("_", "-")

const formPlaceholders: Partial<Record<Form["kind"], string>> = {
  duration: "TIME",
  flag: "on|off",
  integer: "N",
  patterns: "LIST",
  percent: "PERCENT",
  time: "WHEN",
  usd: "USD"
}

const placeholderOf = (name: string, { kind }: Form) =>
  formPlaceholders[kind] ?? name.slice(name.lastIndexOf("-") + 1).toUpperCase()

/** The descriptions of `choice` and `choices` inputs list their options. */
const formsOf = ({ kind }: Form): string => {
  if (kind === "time") return `: ${momentForms}`
  if (kind === "duration") return ", such as 24h or 7d"
  if (kind === "patterns") return ", comma-separated"
  return kind === "choices" ? " (comma-separated)" : ""
}

/** What a missing option means: the default in a command that creates, the current value in one that changes. */
type Missing = "default" | "current"

const explainNeeds = (field: string, missing: Missing) =>
  `; required with --${optionName(field)}${missing === "default" ? "" : " if it is not set yet"}`

const describe = ({ description, form, needs, none }: Inputs[string], missing: Missing): string => {
  const about = description.charAt(0).toLowerCase() + description.slice(1) + formsOf(form)
  if (needs !== undefined) return about + explainNeeds(needs, missing)
  if (none === undefined) return about
  const noneText = none.means === none.word ? none.word : `${none.word} for ${none.means}`
  return `${about}, or ${noneText}${missing === "default" ? `; default: ${none.word}` : ""}`
}

export const inputOption = <Answered extends Schema.Schema.All, Sent extends Schema.Schema.All>(
  name: string,
  input: Input<Answered, Sent>
): Options.Options<Schema.Schema.Type<Sent>> => option(name, input.accepts, input.read, placeholderOf(name, input.form))

const optionalOf = (field: string, input: Inputs[string], missing: Missing) =>
  inputOption(optionName(field), input).pipe(
    Options.withDescription(describe(input, missing)),
    Options.optional,
    Options.map(Option.getOrUndefined)
  )

/** One optional option for each input. */
export const inputOptions = <Of extends Inputs>(inputs: Of, missing: Missing): Options.Options<Values<Of>> => {
  const isValid = Schema.is(bodyOf(inputs))
  return Options.all(Record.map(inputs, (input, field) => optionalOf(field, input, missing))).pipe(
    Options.filterMap((values) => Option.liftPredicate(isValid)(values), "An option is invalid.")
  )
}

export const requireChange = (changes: object) =>
  Object.values(changes).every(Predicate.isUndefined)
    ? new UsageError({ message: "Nothing to change. Add at least one option." })
    : Effect.void

/** Converts the error of a field to one that names the command's option. */
export const explainRefused = ({ explain }: FieldRefused) =>
  new UsageError({
    message: explain((field, values) => `--${optionName(field)}${values === undefined ? "" : ` ${values}`}`)
  })
