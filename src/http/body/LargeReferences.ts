import { Effect } from "effect"
import { largestReference, mostReferences } from "../../domain/Media.ts"
import { decodeBase64 } from "../../services/media/Base64.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { isAbsent, isArray, isObject, isString, type JsonObject } from "./Fields.ts"
import { base64In } from "./References.ts"

/** Characters of base64 that are decoded where the fields are read. */
const smallText = 256 * 1024
/** Twice the base64 of the largest reference: what is longer is no reference, whatever blanks are in it. */
const longestText = 3 * largestReference

const unusable = new Uint8Array()

function* decodeText(text: string): EventLoop.Steps<unknown> {
  const base64 = base64In(text)
  if (base64 === undefined) return text
  return base64.length > longestText ? unusable : ((yield* decodeBase64(base64)) ?? unusable)
}

const isLargeText = (value: unknown): value is string => isString(value) && value.length > smallText

const largeTextIn = (value: unknown): string | undefined => {
  const text = isObject(value) && isAbsent(value.file_id) ? value.image_url : value
  return isLargeText(text) ? text : undefined
}

function* decodeField(value: unknown): EventLoop.Steps<unknown> {
  const decoded: Array<unknown> = []
  for (const item of isArray(value) ? value : [value]) {
    const text = largeTextIn(item)
    decoded.push(text === undefined ? item : yield* decodeText(text))
  }
  return isArray(value) ? decoded : decoded[0]
}

const isLargeField = (value: unknown): boolean =>
  isArray(value)
    ? value.length <= mostReferences && value.some((item) => largeTextIn(item) !== undefined)
    : largeTextIn(value) !== undefined

function* decodeFields(body: JsonObject, names: ReadonlyArray<string>): EventLoop.Steps<JsonObject> {
  const decoded: Record<string, unknown> = { ...body }
  for (const name of names) decoded[name] = yield* decodeField(body[name])
  return decoded
}

/** Puts their bytes in the place of large references, as forms have them: the base64 is decoded in slices. */
export const decodeReferences = (body: unknown): Effect.Effect<unknown> => {
  if (!isObject(body)) return Effect.succeed(body)
  const large = ["image", "input_reference"].filter((name) => isLargeField(body[name]))
  return large.length === 0 ? Effect.succeed(body) : EventLoop.inSlices(decodeFields(body, large))
}
