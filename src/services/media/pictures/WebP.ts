import { breath, tag, type Walk } from "./Walk.ts"

const frame = 8
const riffHeader = 12
const sides = 0x3fff
const vp8Header = 10
const vp8lHeader = 5
const [lossy, lossless, extended, animated] = [tag("VP8 "), tag("VP8L"), tag("VP8X"), tag("ANMF")]

const hasPixels = (bytes: Buffer, name: number, at: number, length: number): boolean => {
  if (name === lossy) {
    return (
      length >= vp8Header &&
      // A key frame, which is the only kind that can stand alone.
      (bytes.readUInt8(at) & 1) === 0 &&
      bytes.readUIntBE(at + 3, 3) === 0x9d012a &&
      (bytes.readUInt16LE(at + 6) & sides) > 0 &&
      (bytes.readUInt16LE(at + 8) & sides) > 0
    )
  }
  if (name === lossless) return length > vp8lHeader && bytes.readUInt8(at) === 0x2f
  // A frame of an animation: sixteen bytes about it, then its own chunks.
  return name === animated && length > 16 + frame
}

/** Chunk by chunk to the end that the file's own head gives, with a picture among them. */
export function* isWhole(bytes: Buffer): Walk<boolean> {
  if (bytes.length < riffHeader + frame) return false
  if (bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WEBP") return false
  const end = frame + bytes.readUInt32LE(4)
  if (end > bytes.length || ![lossy, lossless, extended].includes(bytes.readUInt32BE(12))) return false
  let pixels = false
  let at = riffHeader
  for (let steps = 1; at + frame <= end; steps++) {
    if (steps % breath === 0) yield
    const length = bytes.readUInt32LE(at + 4)
    if (at + frame + length > end) return false
    pixels ||= hasPixels(bytes, bytes.readUInt32BE(at), at + frame, length)
    at += frame + length + (length % 2)
  }
  return pixels
}
