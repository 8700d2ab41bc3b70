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
