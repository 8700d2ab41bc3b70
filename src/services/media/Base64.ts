import { runAtOnce, type Steps } from "../runtime/EventLoop.ts"

/** About 1 ms of work; a multiple of three, so that only the last piece is padded. */
const pieceBytes = 3 * 256 * 1024

export const view = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

export const toBase64 = (bytes: Uint8Array): string => view(bytes).toString("base64")

export const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4

export function* base64Pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    yield Buffer.from(toBase64(bytes.subarray(at, at + pieceBytes)), "latin1")
  }
}

const withoutPadding = (text: string): number => {
  let end = text.length
  while (end > 0 && text.length - end < 2 && text[end - 1] === "=") end--
  return end
}

const pieceCharacters = 64 * 1024

/** Takes either alphabet, padding and blanks; undefined where the text is no base64. */
export function* decodeBase64(text: string): Steps<Uint8Array | undefined> {
  const bytes = Buffer.allocUnsafeSlow(Math.ceil((text.length * 3) / 4))
  let length = 0
  let pending = ""
  /** Node skips invalid characters: then fewer bytes come out than the digits stand for. */
  const take = (digits: string, count: number): boolean => {
    const written = bytes.write(digits, length, "base64")
    length += written
    return count % 4 !== 1 && written === Math.floor((count * 3) / 4)
  }
  for (let at = 0; at < text.length; at += pieceCharacters) {
    if (at > 0) yield
    const piece = pending + text.slice(at, at + pieceCharacters).replaceAll(/\s+/g, "")
    // Only the last group may be padded or cut short.
    const whole = Math.max(0, Math.ceil(piece.length / 4) * 4 - 4)
    pending = piece.slice(whole)
    if (!take(piece.slice(0, whole), whole)) return undefined
  }
  return take(pending, withoutPadding(pending)) ? bytes.subarray(0, length) : undefined
}

export const fromBase64 = (text: string): Uint8Array | undefined => runAtOnce(decodeBase64(text))
