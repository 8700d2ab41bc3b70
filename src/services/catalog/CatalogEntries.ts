import { Array as Arr, Either, Option, Order, Predicate, Redacted, Schema } from "effect"
import { type DatedModel, type Model, type ProviderAccount, type RouteOptions, Surface } from "../../domain/Model.ts"
import { changePrices } from "../../domain/Pricing.ts"
import { findQuotes } from "../../domain/TextDecoding.ts"
import { findNearest, oneOfWords } from "../../domain/Wording.ts"
import {
  CatalogFile,
  type Decode,
  isCausedByRepair,
  type Problem,
  ProviderEntry,
  problemsOf,
  repair,
  strict
} from "./CatalogProblems.ts"
import { contextOf, type Entries, findProblems, sandboxAdapter } from "./CatalogRules.ts"
import {
  CatalogInvalid,
  keyOf,
  type LocatedProblem,
  type Path,
  parse,
  routeOptions,
  type SourceFile
} from "./CatalogSource.ts"
import { ChatModelEntry } from "./ChatEntry.ts"
import { type Adapters, FamilyEntry } from "./EntryFields.ts"
import { type BaseOf, requireValue } from "./EntryOperations.ts"
import { ImageModelEntry } from "./ImageEntry.ts"
import { markupAt, markupDates, readMarkups } from "./Markup.ts"
import { type ModelEntry, onEntry } from "./ModelEntry.ts"
import { datesOf } from "./PriceLists.ts"
import { VideoModelEntry } from "./VideoEntry.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export interface Upstream {
  readonly account: ProviderAccount
  /** Undefined if no credential is needed. */
  readonly variable: string | undefined
  /** Whether the provider has the credential that it needs. */
  readonly isReady: boolean
  readonly options: RouteOptions
}

export interface Compiled {
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly models: ReadonlyArray<Model>
}

/** Returns the trimmed value of the variable, or undefined if it is unset or blank. */
const credentialIn = ({ credential }: ProviderEntry, environment: Environment): string | undefined =>
  (credential === undefined ? undefined : environment[credential]?.trim()) || undefined

const secretProblem = (secret: string): string | undefined =>
  findQuotes(secret) ?? (/^[\x20-\x7e]+$/.test(secret) ? undefined : "has an invalid character: set it again")

const credentialProblem = (entry: ProviderEntry, environment: Environment): string | undefined => {
  const secret = credentialIn(entry, environment)
  if (secret !== undefined) return secretProblem(secret)
  const file = `${entry.credential}_FILE`
  return environment[file] === undefined
    ? undefined
    : `has no value: the file of ${file} is empty or cannot be read, or both variables are set`
}

/** Finds credentials that cannot be sent or would be refused. The messages do not contain their values. */
const findBadCredentials = ({ providers }: Entries, environment: Environment): ReadonlyArray<Problem> =>
  [...providers].flatMap(([name, entry]) => {
    const problem = credentialProblem(entry, environment)
    return problem === undefined
      ? []
      : [{ path: ["providers", name, "credential"], message: `${entry.credential} ${problem}` }]
  })

const upstream = (name: string, entry: ProviderEntry, environment: Environment): Upstream => {
  const secret = credentialIn(entry, environment)
  const hasCredential = secret !== undefined
  return {
    account: {
      name,
      adapter: entry.adapter,
      baseUrl: entry.base_url?.replace(/\/+$/, ""),
      credential: hasCredential ? Redacted.make(secret) : undefined,
      headers: entry.headers ?? {},
      ...(entry.trace_context === true && { sendsTraceContext: true })
    },
    variable: entry.credential,
    isReady: hasCredential || entry.credential === undefined || entry.adapter === sandboxAdapter,
    options: routeOptions(entry.options)
  }
}

/** Returns a function that makes the common part of each route. It numbers routes with the same provider. */
const makeBaseOf = (model: string, upstreams: Compiled["upstreams"]): BaseOf => {
  const countByProvider = new Map<string, number>()
  return (entry) => {
    const ordinal = (countByProvider.get(entry.provider) ?? 0) + 1
    countByProvider.set(entry.provider, ordinal)
    const provider = requireValue(upstreams.get(entry.provider), entry.provider)
    return {
      id: `${model}@${entry.provider}${ordinal === 1 ? "" : `#${ordinal}`}`,
      provider: provider.account,
      model: entry.model,
      preference: entry.preference ?? 1,
      weight: entry.weight ?? 1,
      options: routeOptions(provider.options, entry.options)
    }
  }
}

/** Returns the provider of the route that is tried first. */
const preferredProvider = ({ routes: [first, ...others] }: ModelEntry): string =>
  others.reduce<{ readonly preference?: number; readonly provider: string }>(
    (best, route) => ((route.preference ?? 1) < (best.preference ?? 1) ? route : best),
    first
  ).provider

/** Returns the markup on a model's prices at a moment in Unix milliseconds, in percent. */
export const markupOf = ({ markups }: Entries, entry: ModelEntry, at: number): number =>
  markupAt(markups, at, entry.id, preferredProvider(entry))

export const compile = (entries: Entries, environment: Environment): Compiled => {
  const upstreams = new Map([...entries.providers].map(([name, entry]) => [name, upstream(name, entry, environment)]))
  const context = contextOf(entries)
  const models = entries.models.map(({ entry }) =>
    onEntry(entry, (operations, surfaceEntry): Model => {
      const compileAt = (version: typeof surfaceEntry, at: number, next?: DatedModel): Model => {
        const model = operations.compile(version, makeBaseOf(entry.id, upstreams), context)
        return {
          ...changePrices(model, markupOf(entries, entry, at)),
          ...(next && { next })
        }
      }
      const dates = Arr.sort(Arr.dedupe([...datesOf(surfaceEntry), ...markupDates(entries.markups)]), Order.number)
      const next = dates.reduceRight<DatedModel | undefined>(
        (next, at) => ({ at, model: compileAt(operations.entryAt(surfaceEntry, at), at, next) }),
        undefined
      )
      return compileAt(surfaceEntry, Number.NEGATIVE_INFINITY, next)
    })
  )
  return { upstreams, models }
}

const surfaces: Record<Surface, { readonly decode: Decode<ModelEntry>; readonly keys: ReadonlyArray<string> }> = {
  chat: { decode: Schema.decodeUnknownEither(ChatModelEntry, strict), keys: Object.keys(ChatModelEntry.fields) },
  image: { decode: Schema.decodeUnknownEither(ImageModelEntry, strict), keys: Object.keys(ImageModelEntry.fields) },
  video: { decode: Schema.decodeUnknownEither(VideoModelEntry, strict), keys: Object.keys(VideoModelEntry.fields) }
}

const isSurface = Schema.is(Surface)

/**
 * Returns the surface that `surface` names, exactly or nearly; else one that another key's value names; else the one with
 * most of the model's keys.
 */
const guessSurface = (model: Readonly<Record<string, unknown>>): Surface => {
  const surface = model["surface"]
  if (isSurface(surface)) return surface
  const [nearest] = typeof surface === "string" ? findNearest(surface, Surface.literals, () => 2) : []
  const similarSurface = nearest ?? Object.values(model).find(isSurface)
  if (isSurface(similarSurface)) return similarSurface
  const countOf = (surface: Surface) => surfaces[surface].keys.filter((key) => Object.hasOwn(model, key)).length
  return Surface.literals.reduce((best, surface) => (countOf(surface) > countOf(best) ? surface : best))
}

const nameSurfaces = (problem: Problem): Problem =>
  problem.path.length === 1 && problem.path[0] === "surface" && problem.message !== "is missing"
    ? { ...problem, message: `must be ${oneOfWords(Surface.literals)}` }
    : problem

interface Decoder {
  /** Decodes an entry as one of the guessed surface. */
  readonly decode: Decode<ModelEntry>
  /** The problems found in the entry as it is, before any repair. */
  readonly problems: ReadonlyArray<Problem>
}

/** Returns the decoder for a model, whose surface is guessed if it is invalid. */
const decoderOf = (model: unknown): Decoder => {
  if (!Predicate.isReadonlyRecord(model)) {
    return { decode: surfaces.chat.decode, problems: [{ path: [], message: "must be a mapping" }] }
  }
  const surface = guessSurface(model)
  const { decode } = surfaces[surface]
  const problems = Option.match(Either.getLeft(decode(model)), {
    onNone: () => [],
    onSome: (error) => problemsOf(error).map(nameSurfaces)
  })
  return { decode: (value) => decode(Predicate.isReadonlyRecord(value) ? { ...value, surface } : value), problems }
}

const FileShape = Schema.Struct({ ...CatalogFile.fields, models: Schema.NonEmptyArray(Schema.Unknown) })

const decodeProvider = Schema.decodeUnknownEither(ProviderEntry, strict)
const decodeFamily = Schema.decodeUnknownEither(FamilyEntry, strict)

const section = (value: unknown, key: string): unknown =>
  Predicate.isReadonlyRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined

const record = (value: unknown): Readonly<Record<string, unknown>> => (Predicate.isReadonlyRecord(value) ? value : {})

/** Returns the ids of all models, including malformed ones; undefined if one has no id. */
const readIds = (models: ReadonlyArray<unknown>): ReadonlyArray<string> | undefined => {
  const ids = models.map((model) => section(model, "id")).filter(Predicate.isString)
  return ids.length === models.length ? ids : undefined
}

interface ReadResult {
  readonly entries: Entries
  readonly shapeProblems: ReadonlyArray<Problem>
  readonly replaced: ReadonlyArray<Path>
  readonly removed: ReadonlyArray<Path>
}

/** Decodes the file. Repairs malformed entries, so the rules check them too and one run reports all problems. */
const readEntries = (value: unknown, adapters: Adapters): ReadResult => {
  const shapeProblems: Array<Problem> = []
  const replaced: Array<Path> = []
  const removed: Array<Path> = []

  const readEntry = <A>(at: Path, decode: Decode<A>, entry: unknown): Option.Option<A> => {
    const decoded = decode(entry)
    if (Either.isRight(decoded)) return Option.some(decoded.right)
    const repaired = repair(decode, entry)
    if (repaired === undefined) return Option.none()
    const toFile = (path: Path): Path => [...at, ...path]
    replaced.push(...repaired.replaced.map(toFile))
    removed.push(...repaired.removed.map(toFile))
    return Option.some(repaired.entry)
  }

  const readNamed = <A>(at: string, decode: Decode<A>): Map<string, A> =>
    new Map(
      Object.entries(record(section(value, at))).flatMap(([name, entry]) =>
        Option.match(readEntry([at, name], decode, entry), {
          onNone: () => [],
          onSome: (decoded) => [[name, decoded] as const]
        })
      )
    )

  const readModel = (model: unknown, index: number) => {
    const at = ["models", index]
    const { decode, problems } = decoderOf(model)
    shapeProblems.push(...problems.map(({ message, path }) => ({ path: [...at, ...path], message })))
    return Option.map(readEntry(at, decode, model), (entry) => ({ index, entry }))
  }

  if (!Predicate.isReadonlyRecord(value)) {
    shapeProblems.push({ path: [], message: "must be a mapping of providers, models and families" })
  } else {
    const shape = Schema.decodeUnknownEither(FileShape, strict)(value)
    if (Either.isLeft(shape)) shapeProblems.push(...problemsOf(shape.left))
  }
  const modelValues = section(value, "models")
  const models: ReadonlyArray<unknown> = Array.isArray(modelValues) ? modelValues : []
  const entries: Entries = {
    providers: readNamed("providers", decodeProvider),
    families: readNamed("families", decodeFamily),
    models: Arr.filterMap(models, readModel),
    markups: readMarkups(value),
    adapters,
    known: {
      providers: new Set(Object.keys(record(section(value, "providers")))),
      families: new Set(Object.keys(record(section(value, "families")))),
      models: readIds(models)
    }
  }
  return { entries, shapeProblems, replaced, removed }
}

/** Finds options that the adapter rejects. Reports each at the route, or at its provider if the option is set there. */
const findInvalidOptions = ({ models, providers, adapters }: Entries): ReadonlyArray<Problem> => {
  const problems = models.flatMap(({ entry, index }) =>
    entry.routes.flatMap(({ options, provider: name }, at) => {
      const provider = providers.get(name)
      const decode = provider && adapters.get(provider.adapter)?.options
      const decoded = decode?.(routeOptions(provider?.options, options))
      if (decoded === undefined || Either.isRight(decoded)) return []
      return problemsOf(decoded.left).map(({ message, path }): Problem => {
        const isOwn = options !== undefined && Object.hasOwn(options, String(path[0]))
        const holder = isOwn ? ["models", index, "routes", at] : ["providers", name]
        return { path: [...holder, "options", ...path], message }
      })
    })
  )
  return Arr.dedupeWith(
    problems,
    (one, other) => keyOf(one.path) === keyOf(other.path) && one.message === other.message
  )
}

const byLine = Order.mapInput(Order.number, ({ line }: LocatedProblem) => line)

/** Fails with every problem of the file and every unusable credential. */
export const read = (
  source: SourceFile,
  adapters: Adapters,
  environment: Environment = {}
): Either.Either<Entries, CatalogInvalid> => {
  const { lineOf, problems: syntaxProblems, value } = parse(source)
  if (syntaxProblems.length > 0) return Either.left(new CatalogInvalid({ problems: syntaxProblems }))
  const { entries, shapeProblems, ...repairs } = readEntries(value, adapters)
  const ruleProblems = [...findProblems(entries), ...findInvalidOptions(entries)].filter(
    (one) => !isCausedByRepair(one, repairs)
  )
  const badCredentials = findBadCredentials(entries, environment)
  const problems = [...shapeProblems, ...ruleProblems, ...badCredentials].map(({ path, message }) => ({
    file: source.file,
    line: lineOf(path),
    key: keyOf(path),
    message
  }))
  return problems.length > 0
    ? Either.left(new CatalogInvalid({ problems: Arr.sort(problems, byLine) }))
    : Either.right(entries)
}
