import { Record } from "effect"

export type ImageType = "image/png" | "image/jpeg" | "image/webp" | "image/gif"
export type MediaType = ImageType | "video/mp4"

export const extensionOf: Readonly<Record<MediaType, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
  "video/mp4": "mp4"
}

/** A picture in memory; its type is what its bytes say. */
export interface Picture {
  readonly type: ImageType
  readonly bytes: Uint8Array
}

/** A picture that a customer hands us: where it can be fetched, or the bytes themselves, of whatever they may be. */
export type Reference =
  | { readonly _tag: "Url"; readonly url: string }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }

/** Characters of the longest prompt for an image or a video: many times what any model takes. */
export const longestPrompt = 1_000_000

export const mostReferences = 8
export const largestReference = 20 * 1024 * 1024
/** Largest picture that is taken from a provider, in bytes. */
export const largestPicture = 64 * 1024 * 1024

/** `private` media are never linked or served. */
export type Visibility = "public" | "private"

export interface MediaName {
  readonly visibility: Visibility
  /** The part that nobody can guess. */
  readonly id: string
  readonly type: MediaType
}

const typeOf = new Map(Record.toEntries(extensionOf).map(([type, extension]) => [extension, type]))

/** 192 random bits are 32 characters. */
const shape = new RegExp(`^(public|private)/([A-Za-z0-9_-]{32})\\.(${[...typeOf.keys()].join("|")})$`)

/** `public/<id>.<extension>`; what a store keeps the file under, and what rows keep. */
export const formatMediaName = ({ id, type, visibility }: MediaName): string =>
  `${visibility}/${id}.${extensionOf[type]}`

/** Undefined for everything that no store ever gave a file: no other text is used as a path or a key. */
export const parseMediaName = (name: string): MediaName | undefined => {
  const [, visibility, id = "", extension = ""] = shape.exec(name) ?? []
  const type = typeOf.get(extension)
  return type === undefined ? undefined : { visibility: visibility === "public" ? "public" : "private", id, type }
}
