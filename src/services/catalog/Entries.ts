import { Array as Arr, Either, Option, Order, ParseResult, Predicate, Schema } from "effect"
import { type Adapters, wires } from "./AdapterFeatures.ts"
import { CatalogFile, ProviderEntry } from "./CatalogFormat.ts"
import { type Entries, findMistakes, type Mistake } from "./CatalogRules.ts"
import { keyOf, parse, routeOptions, type SourceFile } from "./CatalogSource.ts"
import { type Environment, findBadCredentials } from "./Compile.ts"
import { FamilyEntry } from "./EntryFields.ts"
import { CatalogInvalid, type Problem } from "./Problem.ts"
import { ModelEntry } from "./Surfaces.ts"

const strict = { errors: "all", onExcessProperty: "error" } as const
const longest = 240

const shorten = (message: string): string =>
  message.length > longest ? `${message.slice(0, longest)}…` : message.replace(/^Expected/, "expected")

const wordOf = ({ _tag, message }: ParseResult.ArrayFormatterIssue): string => {
  if (_tag === "Missing") return "is missing"
  if (_tag !== "Unexpected") return shorten(message)
  const known = message
    .replace(/^is unexpected, expected: /, "")
    .replaceAll('"', "")
    .replaceAll(" | ", ", ")
  return shorten(`unknown key; known: ${known}`)
}

const mistakesOf = (error: ParseResult.ParseError): ReadonlyArray<Mistake> =>
  ParseResult.ArrayFormatter.formatErrorSync(error).map((issue) => ({ path: issue.path, message: wordOf(issue) }))

const findMalformed = (value: unknown): ReadonlyArray<Mistake> => {
  if (!Predicate.isReadonlyRecord(value)) {
    return [{ path: [], message: "must be a mapping of providers, models and families" }]
  }
  return Either.match(Schema.decodeUnknownEither(CatalogFile, strict)(value), {
    onLeft: mistakesOf,
    onRight: () => []
  })
}

const section = (value: unknown, key: string): unknown =>
  Predicate.isReadonlyRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined

const record = (value: unknown): Readonly<Record<string, unknown>> => (Predicate.isReadonlyRecord(value) ? value : {})

const decodeWellFormed = <A, I>(
  schema: Schema.Schema<A, I>,
  named: Readonly<Record<string, unknown>>
): Map<string, A> => {
  const decode = Schema.decodeUnknownOption(schema, strict)
  return new Map(
    Object.entries(named).flatMap(([name, value]) =>
      Option.match(decode(value), { onNone: () => [], onSome: (entry) => [[name, entry] as const] })
    )
  )
}

const entriesOf = (value: unknown, adapters: Adapters): Entries => {
  const providers = record(section(value, "providers"))
  const families = record(section(value, "families"))
  const models = section(value, "models")
  const decode = Schema.decodeUnknownOption(ModelEntry, strict)
  return {
    providers: decodeWellFormed(ProviderEntry, providers),
    families: decodeWellFormed(FamilyEntry, families),
    models: Arr.filterMap(Array.isArray(models) ? models : [], (model, index) =>
      Option.map(decode(model), (entry) => ({ index, entry }))
    ),
    wires: wires(adapters),
    known: { providers: new Set(Object.keys(providers)), families: new Set(Object.keys(families)) }
  }
}

/** Reported at the key of the route or of its provider. */
const findWrongOptions = ({ models, providers, wires }: Entries): ReadonlyArray<Mistake> => {
  const found = models.flatMap(({ entry, index }) =>
    entry.routes.flatMap(({ options, provider: name }, at) => {
      const provider = providers.get(name)
      const decode = provider && wires.get(provider.adapter)?.options
      const decoded = decode?.(routeOptions(provider?.options, options))
      if (decoded === undefined || Either.isRight(decoded)) return []
      return mistakesOf(decoded.left).map(({ message, path }): Mistake => {
        const isOwn = options !== undefined && Object.hasOwn(options, String(path[0]))
        const holder = isOwn ? ["models", index, "routes", at] : ["providers", name]
        return { path: [...holder, "options", ...path], message }
      })
    })
  )
  return Arr.dedupeWith(found, (one, other) => keyOf(one.path) === keyOf(other.path) && one.message === other.message)
}

const byLine = Order.mapInput(Order.number, ({ line }: Problem) => line)

/** Fails with every mistake of the file, and with credentials of the environment that cannot be used. */
export const read = (
  source: SourceFile,
  adapters: Adapters,
  environment: Environment = {}
): Either.Either<Entries, CatalogInvalid> => {
  const { lineOf, problems, value } = parse(source)
  if (problems.length > 0) return Either.left(new CatalogInvalid({ problems }))
  const entries = entriesOf(value, adapters)
  const mistakes = [
    ...findMalformed(value),
    ...findMistakes(entries),
    ...findWrongOptions(entries),
    ...findBadCredentials(entries, environment)
  ]
  const found = mistakes.map(({ path, message }) => ({
    file: source.file,
    line: lineOf(path),
    key: keyOf(path),
    message
  }))
  return found.length > 0
    ? Either.left(new CatalogInvalid({ problems: Arr.sort(found, byLine) }))
    : Either.right(entries)
}
