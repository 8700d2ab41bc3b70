/**
 * H.264, constrained baseline, as little of it as a clip needs that hardly moves: macroblocks as plain samples (I_PCM),
 * and, in later frames, those left out that are as they were (P_Skip). No frame waits for another to be shown.
 */
import * as Bits from "./Bits.ts"

/** Pixels on a side of a macroblock. */
export const macroblock = 16
/** Its bytes: 256 of luma, then 64 each of blue and of red difference. */
export const macroblockBytes = 384

/** In macroblocks; what is below `height` pixels is cropped. */
export interface Grid {
  readonly columns: number
  readonly rows: number
  readonly height: number
}

/** Up to 1620 macroblocks, 40500 of them a second, and 10 Mbit/s. */
const level = 30
const profile = 66
const constraints = 0xc0
/** Frames are counted in four bits. */
const frameNumbers = 16

/** No start code can appear inside a unit: a 3 goes between two zeros and a byte of at most 3. */
const escaped = (unit: Buffer): Buffer => {
  const places: Array<number> = []
  let zeros = 0
  unit.forEach((byte, at) => {
    if (zeros >= 2 && byte <= 3) {
      places.push(at)
      zeros = 0
    }
    zeros = byte === 0 ? zeros + 1 : 0
  })
  if (places.length === 0) return unit
  const ends = [...places, unit.length]
  const pieces = ends.flatMap((end, index) => {
    const piece = unit.subarray(places[index - 1] ?? 0, end)
    return index === 0 ? [piece] : [Buffer.of(3), piece]
  })
  return Buffer.concat(pieces)
}

const unit = (header: number, bits: Bits.Bits): Buffer => Buffer.concat([Buffer.of(header), escaped(bits.end())])

/** As a sample holds it: its length in four bytes before it. */
const sample = (nal: Buffer): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(nal.length)
  return Buffer.concat([length, nal])
}

const sequence = ({ columns, height, rows }: Grid): Buffer => {
  const bits = Bits.make(32)
  for (const byte of [profile, constraints, level]) bits.put(byte, 8)
  // Its id, bits of a frame number less four, order of showing as decoded, one reference frame.
  for (const value of [0, 0, 2, 1]) bits.golomb(value)
  bits.put(0, 1)
  bits.golomb(columns - 1)
  bits.golomb(rows - 1)
  // Frames, not fields; direct inference; cropped.
  bits.put(0b111, 3)
  for (const side of [0, 0, 0, (rows * macroblock - height) / 2]) bits.golomb(side)
  bits.put(0, 1)
  return unit(0x67, bits)
}

const parameters = (): Buffer => {
  const bits = Bits.make(32)
  bits.golomb(0)
  bits.golomb(0)
  bits.put(0, 2)
  for (const value of [0, 0, 0]) bits.golomb(value)
  bits.put(0, 3)
  for (const value of [0, 0, 0]) bits.golomb(value)
  // The deblocking filter can be switched off in a slice.
  bits.put(0b100, 3)
  return unit(0x68, bits)
}

/** The decoder's configuration, as an `avcC` box has it. */
export const configuration = (grid: Grid): Buffer => {
  const [sps, pps] = [sequence(grid), parameters()]
  const head = [1, profile, constraints, level, 0xff]
  return Buffer.from([...head, 0xe1, 0, sps.length, ...sps, 1, 0, pps.length, ...pps])
}

/** A whole picture, that needs no other. `number` counts those of a stream. */
export const keyFrame = ({ columns, rows }: Grid, number: number, blocks: (at: number) => Uint8Array): Buffer => {
  const count = columns * rows
  const bits = Bits.make(64 + count * (macroblockBytes + 8))
  // First macroblock, all of the picture intra, the parameters' id.
  for (const value of [0, 7, 0]) bits.golomb(value)
  bits.put(0, 4)
  bits.golomb(number % 2)
  bits.put(0, 2)
  bits.golomb(0)
  bits.golomb(1)
  for (let at = 0; at < count; at++) {
    bits.golomb(25)
    bits.bytes(blocks(at))
  }
  return sample(unit(0x65, bits))
}

/** The picture before, but for the macroblocks at `changed`, ascending. `number` counts from the last key frame. */
export const nextFrame = (
  { columns, rows }: Grid,
  number: number,
  changed: ReadonlyArray<number>,
  blocks: (at: number) => Uint8Array
): Buffer => {
  const bits = Bits.make(64 + changed.length * (macroblockBytes + 16))
  // First macroblock, all of the picture predicted, the parameters' id.
  for (const value of [0, 5, 0]) bits.golomb(value)
  bits.put(number % frameNumbers, 4)
  bits.put(0, 3)
  bits.golomb(0)
  bits.golomb(1)
  let from = 0
  for (const at of changed) {
    bits.golomb(at - from)
    bits.golomb(30)
    bits.bytes(blocks(at))
    from = at + 1
  }
  if (from < columns * rows) bits.golomb(columns * rows - from)
  return sample(unit(0x41, bits))
}
