import { runAtOnce, type Steps } from "../runtime/EventLoop.ts"

/** Takes about 1 ms to encode. It is a multiple of three, because only the last piece may be padded. */
const pieceBytes = 3 * 256 * 1024

export const view = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export const toBase64 = (bytes: Uint8Array): string => view(bytes).toString("base64")

export const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4

export function* base64Pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    yield Buffer.from(toBase64(bytes.subarray(at, at + pieceBytes)), "latin1")
  }
}

const unpaddedLength = (text: string): number => {
  let end = text.length
  while (end > 0 && text.length - end < 2 && text[end - 1] === "=") end--
  return end
}

const pieceCharacters = 64 * 1024

/** Accepts both alphabets, padding and blanks. Returns undefined if the text is not base64. */
export function* decodeBase64(text: string): Steps<Uint8Array | undefined> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((text.length * 3) / 4))
  let length = 0
  let remainder = ""
  /** Returns whether all digits are valid. Node skips invalid characters, so it then writes too few bytes. */
  const decodeDigits = (digits: string, count: number): boolean => {
    const writtenBytes = bytes.write(digits, length, "base64")
    length += writtenBytes
    return count % 4 !== 1 && writtenBytes === Math.floor((count * 3) / 4)
  }
  for (let at = 0; at < text.length; at += pieceCharacters) {
    if (at > 0) yield
    const piece = remainder + text.slice(at, at + pieceCharacters).replaceAll(/\s+/g, "")
    // Only the last group may be padded or cut short.
    const completeLength = Math.max(0, Math.ceil(piece.length / 4) * 4 - 4)
    remainder = piece.slice(completeLength)
    if (!decodeDigits(piece.slice(0, completeLength), completeLength)) return undefined
  }
  return decodeDigits(remainder, unpaddedLength(remainder)) ? bytes.subarray(0, length) : undefined
}

export const fromBase64 = (text: string): Uint8Array | undefined => runAtOnce(decodeBase64(text))

/** Iterates lazily, so a large body is never in memory twice. */
export interface ByteChunks {
  readonly length: number
  readonly [Symbol.iterator]: () => IterableIterator<Uint8Array>
}

export const chunksOf = (parts: ReadonlyArray<Uint8Array>): ByteChunks => ({
  length: parts.reduce((sum, part) => sum + part.length, 0),
  [Symbol.iterator]: () => parts[Symbol.iterator]()
})

/** Bytes to write into JSON as base64, after a prefix such as that of a `data:` URL. */
export class Base64Field {
  readonly bytes: Uint8Array
  readonly prefix: string

  constructor(bytes: Uint8Array, prefix = "") {
    this.bytes = bytes
    this.prefix = prefix
  }
}

/**
 * Returns JSON in which each `Base64Field` is encoded lazily. `mark` must be unguessable, because the value must not
 * contain it.
 */
export const jsonChunks = (value: unknown, mark: string): ByteChunks => {
  const encodedValues: Array<Uint8Array> = []
  const text = JSON.stringify(value, (_, field: unknown) => {
    if (!(field instanceof Base64Field)) return field
    encodedValues.push(field.bytes)
    return field.prefix + mark
  })
  const parts = text.split(mark).map((part) => Buffer.from(part))
  if (parts.length !== encodedValues.length + 1) throw new Error("the mark occurs in the value")
  return {
    length: encodedValues.reduce((sum, bytes) => sum + base64Length(bytes.length), chunksOf(parts).length),
    *[Symbol.iterator]() {
      for (const [at, part] of parts.entries()) {
        yield part
        const bytes = encodedValues[at]
        if (bytes !== undefined) yield* base64Pieces(bytes)
      }
    }
  }
}
