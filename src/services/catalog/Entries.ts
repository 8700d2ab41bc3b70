import { Array as Arr, Either, Option, Order, Predicate, Schema } from "effect"
import { Surface } from "../../domain/Model.ts"
import { findNearest } from "../../domain/Nearest.ts"
import { type Adapters, wires } from "./AdapterFeatures.ts"
import { CatalogFile, ProviderEntry } from "./CatalogFormat.ts"
import { type Entries, findMistakes } from "./CatalogRules.ts"
import { keyOf, type Path, parse, routeOptions, type SourceFile } from "./CatalogSource.ts"
import { ChatModelEntry } from "./ChatSurface.ts"
import { type Environment, findBadCredentials } from "./Compile.ts"
import { FamilyEntry } from "./EntryFields.ts"
import { ImageModelEntry } from "./ImageEntry.ts"
import { type Decode, isCausedByRepair, type Mistake, mistakesOf, repair, strict } from "./Malformed.ts"
import { CatalogInvalid, type Problem } from "./Problem.ts"
import type { ModelEntry } from "./Surfaces.ts"
import { VideoModelEntry } from "./VideoSurface.ts"

const surfaces: Record<Surface, { readonly decode: Decode<ModelEntry>; readonly keys: ReadonlyArray<string> }> = {
  chat: { decode: Schema.decodeUnknownEither(ChatModelEntry, strict), keys: Object.keys(ChatModelEntry.fields) },
  image: { decode: Schema.decodeUnknownEither(ImageModelEntry, strict), keys: Object.keys(ImageModelEntry.fields) },
  video: { decode: Schema.decodeUnknownEither(VideoModelEntry, strict), keys: Object.keys(VideoModelEntry.fields) }
}

const isSurface = Schema.is(Surface)

/** Guesses by the value of `surface`, else by a value of another key that names one, else by the keys. */
const guessSurface = (model: Readonly<Record<string, unknown>>): Surface => {
  const stated = model["surface"]
  if (isSurface(stated)) return stated
  const [nearest] = typeof stated === "string" ? findNearest(stated, Surface.literals, () => 2) : []
  const similar = nearest ?? Object.values(model).find(isSurface)
  if (isSurface(similar)) return similar
  const countOf = (surface: Surface) => surfaces[surface].keys.filter((key) => Object.hasOwn(model, key)).length
  return Surface.literals.reduce((best, surface) => (countOf(surface) > countOf(best) ? surface : best))
}

const nameSurfaces = (mistake: Mistake): Mistake =>
  mistake.path.length === 1 && mistake.path[0] === "surface" && mistake.message !== "is missing"
    ? { ...mistake, message: `must be one of ${Surface.literals.join(", ")}` }
    : mistake

interface Decoder {
  /** Replaces a wrong surface with the guessed one. */
  readonly decode: Decode<ModelEntry>
  /** Mistakes in the shape of the model. */
  readonly mistakes: ReadonlyArray<Mistake>
}

/** Returns the decoder of the model's stated or guessed surface. */
const decoderOf = (model: unknown): Decoder => {
  if (!Predicate.isReadonlyRecord(model)) {
    return { decode: surfaces.chat.decode, mistakes: [{ path: [], message: "must be a mapping" }] }
  }
  const surface = guessSurface(model)
  const { decode } = surfaces[surface]
  const mistakes = Option.match(Either.getLeft(decode(model)), {
    onNone: () => [],
    onSome: (error) => mistakesOf(error).map(nameSurfaces)
  })
  return { decode: (value) => decode(Predicate.isReadonlyRecord(value) ? { ...value, surface } : value), mistakes }
}

const FileShape = Schema.Struct({ ...CatalogFile.fields, models: Schema.NonEmptyArray(Schema.Unknown) })

const decodeProvider = Schema.decodeUnknownEither(ProviderEntry, strict)
const decodeFamily = Schema.decodeUnknownEither(FamilyEntry, strict)

const section = (value: unknown, key: string): unknown =>
  Predicate.isReadonlyRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined

const record = (value: unknown): Readonly<Record<string, unknown>> => (Predicate.isReadonlyRecord(value) ? value : {})

interface Read {
  readonly entries: Entries
  /** Mistakes in the shape of entries. */
  readonly malformed: ReadonlyArray<Mistake>
  readonly replaced: ReadonlyArray<Path>
  readonly removed: ReadonlyArray<Path>
}

/** Repairs malformed entries, so that the rules check them too and one run reports all mistakes. */
const readEntries = (value: unknown, adapters: Adapters): Read => {
  const malformed: Array<Mistake> = []
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
          onSome: (read) => [[name, read] as const]
        })
      )
    )

  const readModel = (model: unknown, index: number) => {
    const at = ["models", index]
    const { decode, mistakes } = decoderOf(model)
    malformed.push(...mistakes.map(({ message, path }) => ({ path: [...at, ...path], message })))
    return Option.map(readEntry(at, decode, model), (entry) => ({ index, entry }))
  }

  if (!Predicate.isReadonlyRecord(value)) {
    malformed.push({ path: [], message: "must be a mapping of providers, models and families" })
  } else {
    const shape = Schema.decodeUnknownEither(FileShape, strict)(value)
    if (Either.isLeft(shape)) malformed.push(...mistakesOf(shape.left))
  }
  const models = section(value, "models")
  const entries: Entries = {
    providers: readNamed("providers", decodeProvider),
    families: readNamed("families", decodeFamily),
    models: Arr.filterMap(Array.isArray(models) ? models : [], readModel),
    wires: wires(adapters),
    known: {
      providers: new Set(Object.keys(record(section(value, "providers")))),
      families: new Set(Object.keys(record(section(value, "families"))))
    }
  }
  return { entries, malformed, replaced, removed }
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

/** Fails with every mistake of the file and every unusable credential. */
export const read = (
  source: SourceFile,
  adapters: Adapters,
  environment: Environment = {}
): Either.Either<Entries, CatalogInvalid> => {
  const { lineOf, problems, value } = parse(source)
  if (problems.length > 0) return Either.left(new CatalogInvalid({ problems }))
  const { entries, malformed, ...repairs } = readEntries(value, adapters)
  const ruleMistakes = [...findMistakes(entries), ...findWrongOptions(entries)].filter(
    (one) => !isCausedByRepair(one, repairs)
  )
  const bad = findBadCredentials(entries, environment)
  const found = [...malformed, ...ruleMistakes, ...bad].map(({ path, message }) => ({
    file: source.file,
    line: lineOf(path),
    key: keyOf(path),
    message
  }))
  return found.length > 0
    ? Either.left(new CatalogInvalid({ problems: Arr.sort(found, byLine) }))
    : Either.right(entries)
}
