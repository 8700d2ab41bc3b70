import { breath, type Walk } from "./Walk.ts"

const header = 13
const descriptor = 10
const extension = 0x21
const image = 0x2c
const trailer = 0x3b

/** Bytes of the colour table that a flags byte announces. */
const tableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))

/** Where a run of sub-blocks ends; undefined where the file ends before it. */
function* afterBlocks(bytes: Buffer, from: number): Walk<number | undefined> {
  let at = from
  for (let steps = 1; at < bytes.length; steps++) {
    if (steps % breath === 0) yield
    const length = bytes.readUInt8(at)
    at += 1 + length
    if (length === 0) return at
  }
  return undefined
}

/** Block by block from the header, through at least one picture, to the trailer. */
export function* isWhole(bytes: Buffer): Walk<boolean> {
  if (bytes.length < header || !/^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6))) return false
  if (bytes.readUInt16LE(6) === 0 || bytes.readUInt16LE(8) === 0) return false
  let pixels = false
  let at: number | undefined = header + tableBytes(bytes.readUInt8(10))
  for (let steps = 1; at !== undefined && at < bytes.length; steps++) {
    if (steps % breath === 0) yield
    const kind = bytes.readUInt8(at)
    if (kind === trailer) return pixels
    if (kind === extension) {
      at = yield* afterBlocks(bytes, at + 2)
    } else {
      if (kind !== image || at + descriptor > bytes.length) return false
      if (bytes.readUInt16LE(at + 5) === 0 || bytes.readUInt16LE(at + 7) === 0) return false
      pixels = true
      // One byte, the size of the first codes, stands before the coded data.
      at = yield* afterBlocks(bytes, at + descriptor + tableBytes(bytes.readUInt8(at + 9)) + 1)
    }
  }
  return false
}
