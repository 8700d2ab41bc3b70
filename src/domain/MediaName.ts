import { Record } from "effect"
import { extensionOf, type MediaType } from "./Media.ts"

/** `private` media are never linked or served. */
export type Visibility = "public" | "private"

/** What a name says of its file. */
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
