import { Either, Option, Predicate, Schema } from "effect"
import { Surface } from "../../domain/Model.ts"
import { findNearest } from "../../domain/Nearest.ts"
import { ChatModelEntry } from "./ChatSurface.ts"
import { ImageModelEntry } from "./ImageEntry.ts"
import { type Decode, type Mistake, mistakesOf, strict } from "./Malformed.ts"
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
export const decoderOf = (model: unknown): Decoder => {
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
