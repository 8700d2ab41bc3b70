import type { InvalidRequest } from "../../domain/Failure.ts"
import { largestReference, mostReferences, type Reference } from "../../domain/Media.ts"
import { fromBase64 } from "../../services/media/Base64.ts"
import { each, isAbsent, isArray, isObject, isString, type Read, refuse, refuseAt } from "./Fields.ts"

const longestUrl = 8192

const unusable = (): InvalidRequest => refuse("image", "Failed to process the reference image.")

const readBytes = (bytes: Uint8Array | undefined): Read<Reference> =>
  bytes === undefined || bytes.length === 0 || bytes.length > largestReference ? unusable() : { _tag: "Bytes", bytes }

const dataUrl = /^data:[^,]*;base64,/i

export const base64In = (value: string): string | undefined => {
  if (/^https?:\/\//i.test(value)) return undefined
  // Only the start is looked at: the rest is megabytes of base64.
  const [prefix] = dataUrl.exec(value.slice(0, 300)) ?? []
  return prefix === undefined ? value : value.slice(prefix.length)
}

const readString = (value: string): Read<Reference> => {
  const base64 = base64In(value)
  if (base64 !== undefined) return readBytes(fromBase64(base64))
  return value.length <= longestUrl && URL.canParse(value) ? { _tag: "Url", url: value } : unusable()
}

const readImage = (value: unknown): Read<Reference> => {
  if (value instanceof Uint8Array) return readBytes(value)
  return isString(value) ? readString(value) : refuseAt("image", "image", "must be a string or an array of strings")
}

/** The official clients name a reference that is no file as `{image_url}` or `{file_id}`. */
const readInputReference = (value: unknown): Read<Reference> => {
  const param = "input_reference"
  if (value instanceof Uint8Array) return readBytes(value)
  if (isString(value)) return readString(value)
  if (!isObject(value)) return refuseAt(param, param, "must be a string, a file or an object with `image_url`")
  if (!isAbsent(value.file_id)) {
    return refuseAt(param, `${param}.file_id`, "is not supported: send the image itself, or its URL as `image_url`")
  }
  return isString(value.image_url)
    ? readString(value.image_url)
    : refuseAt(param, `${param}.image_url`, "must be a string")
}

const readers = { image: readImage, input_reference: readInputReference } as const

/** References come as URLs, or as the bytes that they encode, of whatever those may be; none is the same as `[]`. */
export const readReferences = (param: keyof typeof readers, value: unknown): Read<ReadonlyArray<Reference>> => {
  if (isAbsent(value)) return []
  const given = isArray(value) ? value : [value]
  return given.length <= mostReferences
    ? each(given, readers[param])
    : refuseAt(param, param, `must hold at most ${mostReferences} images`)
}
