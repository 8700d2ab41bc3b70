import { Args, Command, HelpDoc, Options } from "@effect/cli"
import { Clock, Effect, Option, Predicate } from "effect"
import { duration, durationForms, type PastMoment, pastForms, pastMoment, toPast } from "../domain/Moment.ts"
import { enteredUsd, type NanoUsd } from "../domain/Money.ts"
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

export const text = (name: string) =>
  Options.text(name).pipe(Options.withPseudoName(placeholders[name] ?? name.toUpperCase()))

export const orgOption = text("org").pipe(Options.withDescription("an organization's id or name"))

/** Null is a value: it removes a limit. */
const parseWith =
  <A>(parse: (text: string) => A | undefined) =>
  (text: string) =>
    Option.filter(Option.some(parse(text)), Predicate.isNotUndefined)

/** `parse` returns undefined to refuse the text. */
export const option = <A>(name: string, accepts: string, parse: (text: string) => A | undefined) =>
  text(name).pipe(Options.filterMap(parseWith(parse), `--${name} must be ${accepts}.`))

export const argument = <A>(name: string, accepts: string, parse: (text: string) => A | undefined) =>
  Args.text({ name }).pipe(
    Args.withDescription(accepts),
    Args.mapEffect((text) => Effect.mapError(parseWith(parse)(text), () => HelpDoc.p(`${name} must be ${accepts}.`)))
  )

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

export const addressForms = "an address or a range such as 203.0.113.0/24 or 2001:db8::/32"

export const oneOf = <A extends string>(name: string, words: ReadonlyArray<A>) =>
  option(name, `one of ${words.join(", ")}`, (text) => words.find((word) => word === text))

export const group = (name: string, description: string) =>
  Command.make(name, {}, () => {
    const message = `gateway ${name} needs one of its commands; see gateway ${name} --help.`
    return new CommandFailed({ message })
  }).pipe(Command.withDescription(description))

const usdWhere = (holds: (amount: NanoUsd) => boolean) => (text: string) => {
  const amount = enteredUsd(text)
  return amount !== undefined && holds(amount) ? amount : undefined
}

export const positiveUsd = usdWhere((amount) => amount > 0n)
export const nonNegativeUsd = usdWhere((amount) => amount >= 0n)
export const nonZeroUsd = usdWhere((amount) => amount !== 0n)
const decimals = "such as 12.50, with at most 9 decimals and at most 1000000000"
export const usd = {
  positive: `an amount above 0 in USD ${decimals}`,
  nonNegative: `an amount in USD, 0 or more, ${decimals}`,
  nonZero: `an amount in USD, not 0, ${decimals}; negative takes away`
}

export const whole =
  (from: number, to = 2_147_483_647) =>
  (text: string) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN
    return number >= from && number <= to ? number : undefined
  }

export const upTo = (longest: number) => (text: string) => (text.length > longest ? undefined : text)

export const filledTo = (longest: number) => (text: string) => (text.trim() === "" ? undefined : upTo(longest)(text))

export const limit = (most: number, description: string) =>
  option("limit", `an integer from 1 to ${most}`, whole(1, most)).pipe(
    Options.withDescription(`${description}; default: 100`),
    Options.withDefault(100)
  )

/** Undefined where the option is not given. */
export const optionalLimit = (most: number, description: string) =>
  optional(option("limit", `an integer from 1 to ${most}`, whole(1, most)), description)
