import { Record } from "effect"
import { InvalidRequest } from "./Failure.ts"

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

export const maxPromptLength = 1_000_000
export const maxUrlLength = 8_192

export const maxReferences = 8
export const maxReferenceBytes = 20 * 1024 * 1024
export const maxPictureBytes = 64 * 1024 * 1024

/** `private` media are never linked or served. */
type Visibility = "public" | "private"

export interface MediaName {
  readonly visibility: Visibility
  readonly id: string
  readonly type: MediaType
}

const typeOf = new Map(Record.toEntries(extensionOf).map(([type, extension]) => [extension, type]))

const namePattern = new RegExp(`^(public|private)/([A-Za-z0-9_-]{32})\\.(${[...typeOf.keys()].join("|")})$`)

/** Returns `public/<id>.<extension>`, the form in media stores and database rows. */
export const formatMediaName = ({ id, type, visibility }: MediaName): string =>
  `${visibility}/${id}.${extensionOf[type]}`

/** Returns undefined for any other text, because the name becomes a path. */
export const parseMediaName = (name: string): MediaName | undefined => {
  const [, visibility, id = "", extension = ""] = namePattern.exec(name) ?? []
  const type = typeOf.get(extension)
  return type === undefined ? undefined : { visibility: visibility === "public" ? "public" : "private", id, type }
}

const mib = 1024 * 1024

/** Why a reference image cannot be used; completes "The image …". The texts name no private host and quote no response. */
export const referenceProblems = {
  neither: "is neither an http(s) URL nor base64",
  neitherUrl: `is neither an http(s) URL of at most ${maxUrlLength} characters nor a \`data:\` URL with base64`,
  empty: "is empty or not valid base64",
  large: `is larger than ${maxReferenceBytes / mib} MiB`,
  largeTogether: (bytes: number) => `makes the images larger than ${bytes / mib} MiB in total`,
  stored: "is not in this gateway's media, or was deleted",
  format: "is not a complete PNG, JPEG, WebP or GIF",
  address: "is at an address that is not public",
  name: "is at a host that has no public address",
  url: `has a URL that is not valid or has more than ${maxUrlLength} characters`,
  credentials: "has a URL with a user name or password",
  port: "is not at the default port of its scheme",
  redirect: "redirects too often, or to something other than an http(s) URL",
  status: (status: number) => `could not be fetched: its host returned status ${status}`,
  network: "could not be fetched: its host was unreachable or closed the connection early",
  time: "took too long to fetch",
  provider: "could not be used by the provider"
} as const

/** Returns the name of one of several images; undefined if there is only one. */
export const nthImage = (index: number, count: number): string | undefined =>
  count > 1 ? `Image ${index + 1} of ${count}` : undefined

export const unusableReference = "Failed to process the reference image."

export const explainReference = (problem: string, subject = "The image"): string => `${subject} ${problem}.`

export const refuseReference = (param: string, problem: string, subject?: string): InvalidRequest =>
  new InvalidRequest({ message: unusableReference, param, hint: explainReference(problem, subject) })
