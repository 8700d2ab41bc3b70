import { ParseResult, Predicate, Schema } from "effect"
import { compileModelPatterns, findUnmatchedPatterns } from "../../domain/ModelPatterns.ts"
import { isPercent } from "../../domain/Percent.ts"
import { Numeral, type Path } from "./CatalogSource.ts"
import { datedList, Instant, optional } from "./EntryFields.ts"
import { explainUnknownName, type Report } from "./EntryOperations.ts"

const [minPercent, maxPercent] = [-100, 1000]

const Percent = Schema.transformOrFail(
  Schema.instanceOf(Numeral, {
    description: `A percentage from ${minPercent} to ${maxPercent}, with at most two decimals.`,
    jsonSchema: { type: "number", minimum: minPercent, maximum: maxPercent }
  }),
  Schema.Number,
  {
    strict: true,
    decode: (numeral, _, ast) => {
      const percent = Number(numeral.text)
      return percent >= minPercent && percent <= maxPercent && isPercent(percent)
        ? ParseResult.succeed(percent)
        : ParseResult.fail(new ParseResult.Type(ast, numeral))
    },
    encode: (percent) => ParseResult.succeed(new Numeral(String(percent)))
  }
)

const Percents = Schema.Record({ key: Schema.String, value: Percent })

/** A percentage to add to all prices, or percentages by provider and by model. */
const Markup = Schema.Union(
  Percent,
  Schema.Struct({ default: optional(Percent), providers: optional(Percents), models: optional(Percents) })
).annotations({
  message: () => ({
    message:
      `must be a percentage from ${minPercent} to ${maxPercent} with at most two decimals, such as 20, ` +
      "or a mapping with default, providers and models",
    override: true
  })
})
type Markup = typeof Markup.Type

/** The catalog's keys for markups. `markup_from` lists later ones in chronological order. */
export const markupFields = {
  markup: optional(Markup),
  markup_from: datedList(Schema.Struct({ at: Instant, markup: Markup }))
}

export interface DatedMarkup {
  /** Unix milliseconds; undefined for the first. */
  readonly at: number | undefined
  readonly markup: Markup
  /** Its path in the file. */
  readonly path: Path
}

/** In chronological order. Without a markup the prices are those of the file. */
export type Markups = ReadonlyArray<DatedMarkup>

const decodeFields = Schema.decodeUnknownOption(Schema.Struct(markupFields))

/** Returns the markups of a parsed file; none if they are malformed, which decoding the whole file reports. */
export const readMarkups = (file: unknown): Markups => {
  if (!Predicate.isReadonlyRecord(file)) return []
  const { markup, markup_from } = file
  const fields = decodeFields({
    ...(markup !== undefined && { markup }),
    ...(markup_from !== undefined && { markup_from })
  })
  if (fields._tag === "None") return []
  const first = fields.value.markup
  return [
    ...(first === undefined ? [] : [{ at: undefined, markup: first, path: ["markup"] }]),
    ...(fields.value.markup_from ?? []).map(({ at, markup }, index) => ({
      at,
      markup,
      path: ["markup_from", index, "markup"]
    }))
  ]
}

const byLength = (one: string, other: string) => other.length - one.length

/** Returns the id itself if it is listed, otherwise the longest pattern that matches it. */
const patternFor = (patterns: ReadonlyArray<string>, id: string): string | undefined =>
  patterns.find((pattern) => pattern === id) ??
  patterns.toSorted(byLength).find((pattern) => compileModelPatterns([pattern])(id))

/** Returns the percentage at a moment: the model's, else its provider's, else the default. */
export const markupAt = (markups: Markups, at: number, id: string, provider: string): number => {
  const markup = markups.findLast((one) => one.at === undefined || one.at <= at)?.markup ?? 0
  if (typeof markup === "number") return markup
  // Own keys only, because a provider may be named like a method of objects.
  const percentIn = (percents: typeof Percents.Type = {}, key = "") =>
    Object.hasOwn(percents, key) ? percents[key] : undefined
  const pattern = patternFor(Object.keys(markup.models ?? {}), id)
  return percentIn(markup.models, pattern) ?? percentIn(markup.providers, provider) ?? markup.default ?? 0
}

export const markupDates = (markups: Markups): ReadonlyArray<number> =>
  markups.flatMap(({ at }) => (at === undefined ? [] : [at]))

/** Returns a hint if the last date of `markup_from` has passed. */
export const findExpiredMarkups = (markups: Markups, now: number): ReadonlyArray<string> =>
  (markups.at(-1)?.at ?? Infinity) <= now
    ? ["every date of markup_from has passed: replace markup with the last one"]
    : []

/** `models` are the ids of all models; undefined if some are unreadable, so patterns cannot be checked. */
export const checkMarkups = (
  report: Report,
  markups: Markups,
  providers: ReadonlySet<string>,
  models: ReadonlyArray<string> | undefined
): void => {
  markups.forEach(({ at, markup, path }, index) => {
    const previousAt = markups[index - 1]?.at
    if (at !== undefined && previousAt !== undefined && previousAt >= at)
      report([...path.slice(0, -1), "at"], "must be later than the one above it")
    if (typeof markup === "number") return
    for (const name of Object.keys(markup.providers ?? {}))
      if (!providers.has(name))
        report([...path, "providers", name], explainUnknownName("providers", "provider", name, providers))
    if (models === undefined) return
    for (const pattern of findUnmatchedPatterns(Object.keys(markup.models ?? {}), models))
      report([...path, "models", pattern], "matches no model of this catalog")
  })
}
