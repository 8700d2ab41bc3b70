import { HelpDoc, Options, ValidationError } from "@effect/cli"
import { Clock, Effect, Option, Predicate, Record, Schema } from "effect"
import { momentForms } from "../domain/Moment.ts"
import type { FieldRefused } from "../services/resources/Input.ts"
import { bodyOf, type Form, type Input, type Inputs, type Values } from "../services/resources/Input.ts"
import { CommandFailed } from "./CommandFailed.ts"

export const optionName = (field: string): string => field.replace(/_(usd|at|seconds)$/, "").replaceAll("_", "-")

const placeholders: Partial<Record<Form["kind"], string>> = {
  duration: "TIME",
  flag: "on|off",
  integer: "N",
  patterns: "LIST",
  time: "WHEN",
  usd: "USD"
}

const placeholderOf = (name: string, { kind }: Form) =>
  placeholders[kind] ?? name.slice(name.lastIndexOf("-") + 1).toUpperCase()

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
): Options.Options<Schema.Schema.Type<Sent>> => {
  const refusal = ValidationError.invalidValue(HelpDoc.p(`--${name} must be ${input.accepts}.`))
  return Options.text(name).pipe(
    Options.withPseudoName(placeholderOf(name, input.form)),
    Options.mapEffect((word) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const value = input.read(word, now)
        return value === undefined ? Effect.fail(refusal) : Effect.succeed(value)
      })
    )
  )
}

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
