import { isUtf8 } from "node:buffer"
import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"
import { type JsonObject, refuse } from "./Guards.ts"

const maxParts = 100
const maxHeadBytes = 16 * 1024
const crlf = "\r\n"
const endOfHead = "\r\n\r\n"

export interface Part {
  readonly name: string
  readonly value: string | Uint8Array
}

type Decoded<A> = Either.Either<A, InvalidRequest>

const invalidForm = (problem: string): Decoded<never> => Either.left(refuse(null, `The form ${problem}.`))
const malformedForm = invalidForm("is not valid multipart/form-data")

/** Reads the parameters of a header such as `value; name=token; other="quoted"`. Returns undefined if it is invalid. */
const readParameters = (header: string): ReadonlyMap<string, string> | undefined => {
  const parameters = new Map<string, string>()
  const parameter = /;[ \t]*(?:([^\s=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*)?/y
  parameter.lastIndex = header.indexOf(";")
  while (parameter.lastIndex !== -1 && parameter.lastIndex < header.length) {
    const [match, name, quoted, token = ""] = parameter.exec(header) ?? []
    if (match === undefined) return undefined
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return undefined
    parameters.set(name.toLowerCase(), quoted?.replaceAll(/\\(["\\])/g, "$1") ?? token)
  }
  return parameters
}

const readBoundary = (contentType: string): Decoded<string> => {
  const boundary = readParameters(contentType)?.get("boundary")
  return boundary !== undefined && /^[!-~](?:[ -~]{0,68}[!-~])?$/.test(boundary)
    ? Either.right(boundary)
    : invalidForm("has no boundary: let your HTTP client set `Content-Type: multipart/form-data; boundary=…`")
}

const pieceBytes = 64 * 1024

function* decodeUtf8(bytes: Buffer): Steps<string> {
  const pieces: Array<string> = []
  for (let start = 0; start < bytes.length; ) {
    let end = Math.min(start + pieceBytes, bytes.length)
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) end++
    pieces.push(bytes.toString("utf8", start, end))
    start = end
    if (start < bytes.length) yield
  }
  return pieces.join("")
}

const byteOrderMark = "\ufeff"

function* decodeText(bytes: Buffer): Steps<string | undefined> {
  if (!isUtf8(bytes)) return undefined
  const text = yield* decodeUtf8(bytes)
  return text.startsWith(byteOrderMark) ? text.slice(1) : text
}

const readHead = (bytes: Buffer): Decoded<ReadonlyMap<string, string>> => {
  if (bytes.length > maxHeadBytes) return invalidForm(`has a part with more than ${maxHeadBytes} bytes of headers`)
  const headers = new Map<string, string>()
  for (const line of bytes.toString().split(crlf)) {
    const [, name, value = ""] = /^([^\s:]+):[ \t]*([^\r\n\0]*)$/.exec(line) ?? []
    if (name === undefined || headers.has(name.toLowerCase())) return malformedForm
    headers.set(name.toLowerCase(), value)
  }
  return Either.right(headers)
}

const plainEncodings: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"])

function* readPart(headers: ReadonlyMap<string, string>, content: Buffer): Steps<Decoded<Part>> {
  const disposition = headers.get("content-disposition") ?? ""
  const parameters = readParameters(disposition)
  const name = parameters?.get("name")
  if (parameters === undefined || name === undefined || !/^form-data[ \t]*;/i.test(disposition)) return malformedForm
  const encoding = headers.get("content-transfer-encoding") ?? "binary"
  if (!plainEncodings.has(encoding.trim().toLowerCase()))
    return invalidForm("has an encoded part: send its bytes without an encoding")
  const type = headers.get("content-type") ?? ""
  if (/^multipart\//i.test(type)) return invalidForm("must not contain another form")
  const isFile =
    parameters.has("filename") ||
    parameters.has("filename*") ||
    /^(?:image|video|application\/octet-stream)\b/i.test(type)
  const value = isFile ? content : yield* decodeText(content)
  return value === undefined ? invalidForm("has a text part that is not UTF-8") : Either.right({ name, value })
}

/**
 * Parses a form. The platform's parser, multipasta, is not used, because it throws at `filename*=UTF-8''%ff` and loses parts
 * whose file name is not Latin.
 */
export function* parseForm(contentType: string, body: Buffer): Steps<Decoded<ReadonlyArray<Part>>> {
  const boundary = readBoundary(contentType)
  if (Either.isLeft(boundary)) return Either.left(boundary.left)
  const openingDelimiter = `--${boundary.right}`
  const delimiter = Buffer.from(crlf + openingDelimiter)
  // The first boundary may be at the start of the body, where no line break precedes it.
  const firstBoundary =
    body.toString("latin1", 0, openingDelimiter.length) === openingDelimiter ? -crlf.length : body.indexOf(delimiter)
  if (firstBoundary === -1) return invalidForm("does not contain its boundary")
  const parts: Array<Part> = []
  let start = firstBoundary + delimiter.length
  while (body.toString("latin1", start, start + 2) !== "--") {
    if (parts.length === maxParts) return invalidForm(`has more than ${maxParts} parts`)
    const startLength = /^[ \t]{0,64}\r\n/.exec(body.toString("latin1", start, start + 66))?.[0].length
    if (startLength === undefined) return malformedForm
    const end = body.indexOf(delimiter, start)
    if (end === -1) return invalidForm("is incomplete: its last boundary is missing")
    const bytes = body.subarray(start, end)
    const headEnd = bytes.indexOf(endOfHead)
    if (headEnd < startLength) return malformedForm
    const headers = readHead(bytes.subarray(startLength, headEnd))
    if (Either.isLeft(headers)) return Either.left(headers.left)
    const part = yield* readPart(headers.right, bytes.subarray(headEnd + endOfHead.length))
    if (Either.isLeft(part)) return Either.left(part.left)
    parts.push(part.right)
    start = end + delimiter.length
  }
  return Either.right(parts)
}

/** Converts a form to an object. Repeated names and `image[]` become arrays. Empty texts are omitted. */
export const formToObject = (parts: ReadonlyArray<Part>): JsonObject => {
  const values = new Map<string, ReadonlyArray<string | Uint8Array>>()
  const lists = new Set<string>()
  for (const { name, value } of parts) {
    if (value === "") continue
    const key = name.replace(/\[\d*\]$/, "")
    const previous = values.get(key) ?? []
    if (key !== name || previous.length > 0) lists.add(key)
    values.set(key, [...previous, value])
  }
  return Object.fromEntries([...values].map(([key, list]) => [key, lists.has(key) ? list : list[0]]))
}
