/** Bytes encoded in one go, about a millisecond of work: a multiple of three, so that only the last piece is padded. */
const pieceBytes = 3 * 256 * 1024

const view = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** Base64 in one text. Of many MiB that takes long, and everything else waits: see `base64Pieces`. */
export const toBase64 = (bytes: Uint8Array): string => view(bytes).toString("base64")

/** Characters of the base64 of so many bytes. */
export const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4

/** The same text piece by piece, each made when it is asked for. */
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

const blanks = ["\n", "\r", "\t", " "]

/** The bytes of a base64 text, of either alphabet, with or without padding; undefined where it is none. */
export const fromBase64 = (given: string): Uint8Array | undefined => {
  const text = blanks.some((blank) => given.includes(blank)) ? given.replaceAll(/\s+/g, "") : given
  const digits = withoutPadding(text)
  const bytes = Buffer.from(text, "base64")
  // Node skips what is no base64: then fewer bytes come out than the digits stand for.
  return digits % 4 !== 1 && bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined
}
