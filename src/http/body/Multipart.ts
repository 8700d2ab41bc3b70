import { isUtf8 } from "node:buffer"
import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { Steps } from "../../services/runtime/EventLoop.ts"
import { type JsonObject } from "./Guards.ts"
import { refuse } from "./Refusals.ts"

const maxParts = 100
const largestHeadBytes = 16 * 1024
const crlf = "\r\n"
const endOfHead = "\r\n\r\n"

export interface Part {
  readonly name: string
  readonly value: string | Uint8Array
}

type Decoded<A> = Either.Either<A, InvalidRequest>

const invalid = (problem: string): Decoded<never> => Either.left(refuse(null, `The form ${problem}.`))
const malformed = invalid("is not valid multipart/form-data")

/** `value; name=token; other="quoted"`, keys in lower case. */
const readParameters = (header: string): ReadonlyMap<string, string> | undefined => {
  const found = new Map<string, string>()
  const parameter = /;[ \t]*(?:([^\s=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*)?/y
  parameter.lastIndex = header.indexOf(";")
  while (parameter.lastIndex !== -1 && parameter.lastIndex < header.length) {
    const [whole, name, quoted, token = ""] = parameter.exec(header) ?? []
    if (whole === undefined) return undefined
    if (name === undefined) continue
    if (found.has(name.toLowerCase())) return undefined
    found.set(name.toLowerCase(), quoted?.replaceAll(/\\(["\\])/g, "$1") ?? token)
  }
  return found
}

const readBoundary = (contentType: string): Decoded<string> => {
  const boundary = readParameters(contentType)?.get("boundary")
  return boundary !== undefined && /^[!-~](?:[ -~]{0,68}[!-~])?$/.test(boundary)
    ? Either.right(boundary)
    : invalid("has no boundary: send `Content-Type: multipart/form-data; boundary=…`, as clients do by themselves")
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
  if (bytes.length > largestHeadBytes) return invalid(`has a part with more than ${largestHeadBytes} bytes of headers`)
  const headers = new Map<string, string>()
  for (const line of bytes.toString().split(crlf)) {
    const [, name, value = ""] = /^([^\s:]+):[ \t]*([^\r\n\0]*)$/.exec(line) ?? []
    if (name === undefined || headers.has(name.toLowerCase())) return malformed
    headers.set(name.toLowerCase(), value)
  }
  return Either.right(headers)
}

const plainEncodings: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"])

function* readPart(headers: ReadonlyMap<string, string>, content: Buffer): Steps<Decoded<Part>> {
  const disposition = headers.get("content-disposition") ?? ""
  const described = readParameters(disposition)
  const name = described?.get("name")
  if (described === undefined || name === undefined || !/^form-data[ \t]*;/i.test(disposition)) return malformed
  const encoding = headers.get("content-transfer-encoding") ?? "binary"
  if (!plainEncodings.has(encoding.trim().toLowerCase()))
    return invalid("has an encoded part: send the bytes as they are")
  const type = headers.get("content-type") ?? ""
  if (/^multipart\//i.test(type)) return invalid("has a form as a part")
  const isFile =
    described.has("filename") ||
    described.has("filename*") ||
    /^(?:image|video|application\/octet-stream)\b/i.test(type)
  const value = isFile ? content : yield* decodeText(content)
  return value === undefined ? invalid("has a text part that is not UTF-8") : Either.right({ name, value })
}

/** Written by hand: multipasta throws at `filename*=UTF-8''%ff`, and loses parts whose file name is not Latin. */
export function* parseForm(contentType: string, body: Buffer): Steps<Decoded<ReadonlyArray<Part>>> {
  const boundary = readBoundary(contentType)
  if (Either.isLeft(boundary)) return Either.left(boundary.left)
  const opening = `--${boundary.right}`
  const delimiter = Buffer.from(crlf + opening)
  // The first may stand at the very beginning, without a line end.
  const first = body.toString("latin1", 0, opening.length) === opening ? -crlf.length : body.indexOf(delimiter)
  if (first === -1) return invalid("does not have its own boundary in it")
  const parts: Array<Part> = []
  let start = first + delimiter.length
  while (body.toString("latin1", start, start + 2) !== "--") {
    if (parts.length === maxParts) return invalid(`has more than ${maxParts} parts`)
    const begin = /^[ \t]{0,64}\r\n/.exec(body.toString("latin1", start, start + 66))?.[0].length
    if (begin === undefined) return malformed
    const end = body.indexOf(delimiter, start)
    if (end === -1) return invalid("is cut off: its last boundary is missing")
    const part = body.subarray(start, end)
    const head = part.indexOf(endOfHead)
    if (head < begin) return malformed
    const headers = readHead(part.subarray(begin, head))
    if (Either.isLeft(headers)) return Either.left(headers.left)
    const read = yield* readPart(headers.right, part.subarray(head + endOfHead.length))
    if (Either.isLeft(read)) return Either.left(read.left)
    parts.push(read.right)
    start = end + delimiter.length
  }
  return Either.right(parts)
}

/** Repeated names and `image[]` become arrays; empty texts are left out. */
export const formObject = (parts: ReadonlyArray<Part>): JsonObject => {
  const values = new Map<string, ReadonlyArray<string | Uint8Array>>()
  const lists = new Set<string>()
  for (const { name, value } of parts) {
    if (value === "") continue
    const key = name.replace(/\[\d*\]$/, "")
    const before = values.get(key) ?? []
    if (key !== name || before.length > 0) lists.add(key)
    values.set(key, [...before, value])
  }
  return Object.fromEntries([...values].map(([key, all]) => [key, lists.has(key) ? all : all[0]]))
}
