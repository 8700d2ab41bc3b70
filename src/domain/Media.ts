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

export interface Picture {
  readonly type: ImageType
  readonly bytes: Uint8Array
}

export interface Pixels {
  readonly width: number
  readonly height: number
}

export type MeasuredPicture = Picture & Pixels

export type Reference =
  | { readonly _tag: "Url"; readonly url: string }
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }

export const longestPrompt = 1_000_000
export const longestUrl = 8_192

export const maxReferences = 8
export const largestReference = 20 * 1024 * 1024
export const largestPicture = 64 * 1024 * 1024

/** `private` media are never linked or served. */
type Visibility = "public" | "private"

export interface MediaName {
  readonly visibility: Visibility
  readonly id: string
  readonly type: MediaType
}

const typeOf = new Map(Record.toEntries(extensionOf).map(([type, extension]) => [extension, type]))

const namePattern = new RegExp(`^(public|private)/([A-Za-z0-9_-]{32})\\.(${[...typeOf.keys()].join("|")})$`)

/** `public/<id>.<extension>`, as stores and rows keep it. */
export const formatMediaName = ({ id, type, visibility }: MediaName): string =>
  `${visibility}/${id}.${extensionOf[type]}`

/** Undefined for any text that a store did not issue, so no other is used as a path. */
export const parseMediaName = (name: string): MediaName | undefined => {
  const [, visibility, id = "", extension = ""] = namePattern.exec(name) ?? []
  const type = typeOf.get(extension)
  return type === undefined ? undefined : { visibility: visibility === "public" ? "public" : "private", id, type }
}
