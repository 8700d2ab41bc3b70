import { breath, tag, type Walk } from "./Walk.ts"

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Length, name and checksum around a chunk's data. */
const frame = 12
const headerLength = 13
const [header, data, mark] = [tag("IHDR"), tag("IDAT"), tag("IEND")]
const largestSide = 0x7fffffff

const depths: Readonly<Record<number, ReadonlyArray<number>>> = {
  0: [1, 2, 4, 8, 16],
  2: [8, 16],
  3: [1, 2, 4, 8],
  4: [8, 16],
  6: [8, 16]
}

const isSide = (pixels: number): boolean => pixels > 0 && pixels <= largestSide

/** `at` is where the first chunk begins. */
const hasHeader = (bytes: Buffer, at: number): boolean =>
  bytes.length >= at + frame + headerLength &&
  bytes.readUInt32BE(at) === headerLength &&
  bytes.readUInt32BE(at + 4) === header &&
  isSide(bytes.readUInt32BE(at + 8)) &&
  isSide(bytes.readUInt32BE(at + 12)) &&
  (depths[bytes.readUInt8(at + 17)]?.includes(bytes.readUInt8(at + 16)) ?? false)

/** Chunk by chunk from the header, through some pixels, to the end mark. */
export function* isWhole(bytes: Buffer): Walk<boolean> {
  if (!bytes.subarray(0, signature.length).equals(signature) || !hasHeader(bytes, signature.length)) return false
  let pixels = false
  let at = signature.length
  for (let steps = 1; at + frame <= bytes.length; steps++) {
    if (steps % breath === 0) yield
    const end = at + frame + bytes.readUInt32BE(at)
    if (end > bytes.length) return false
    const name = bytes.readUInt32BE(at + 4)
    if (name === mark) return pixels
    if (name === data) pixels = true
    at = end
  }
  return false
}
