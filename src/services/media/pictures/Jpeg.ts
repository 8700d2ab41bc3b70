import { breath, type Walk } from "./Walk.ts"

const start = 0xd8
const end = 0xd9
const scan = 0xda
const shortestFrame = 8

const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7)

/** Where the marker after a scan's coded data begins; the length of all where there is none. */
function* afterData(bytes: Buffer, from: number): Walk<number> {
  let at = bytes.indexOf(0xff, from)
  for (let steps = 1; at !== -1 && at + 1 < bytes.length; at = bytes.indexOf(0xff, at + 1), steps++) {
    if (steps % breath === 0) yield
    const next = bytes.readUInt8(at + 1)
    if (next !== 0x00 && next !== 0xff && !isBare(next)) return at
  }
  return bytes.length
}

/** Segment by segment from the start mark, through a frame and its scans, to the end mark. */
export function* isWhole(bytes: Buffer): Walk<boolean> {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xff00 + start) return false
  let sized = false
  let scanned = false
  let at = 2
  for (let steps = 1; at + 1 < bytes.length; steps++) {
    if (steps % breath === 0) yield
    if (bytes[at] !== 0xff) return false
    const marker = bytes.readUInt8(at + 1)
    if (marker === 0xff) {
      at += 1
      continue
    }
    if (marker === end) return scanned
    if (isBare(marker)) {
      at += 2
      continue
    }
    if (marker === 0x00 || marker === start || at + 4 > bytes.length) return false
    const length = bytes.readUInt16BE(at + 2)
    const next = at + 2 + length
    if (length < 2 || next > bytes.length) return false
    if (isFrame(marker)) {
      sized = length >= shortestFrame && bytes.readUInt16BE(at + 5) > 0 && bytes.readUInt16BE(at + 7) > 0
      if (!sized) return false
    }
    if (marker === scan) {
      if (!sized) return false
      scanned = true
      at = yield* afterData(bytes, next)
    } else {
      at = next
    }
  }
  return false
}
