/**
 * A decoder of its own for what a sandbox clip is made of, written from the standard and not from the encoder. It
 * throws at anything that a constrained baseline decoder would not take, or that it does not know.
 */
import { assert } from "../../harness/It.ts"

/** The bits of a NAL unit without emulation prevention bytes. */
const reader = (nal: Uint8Array) => {
  const unit: Array<number> = []
  nal.forEach((byte, at) => {
    const prevents = byte === 3 && nal[at - 1] === 0 && nal[at - 2] === 0
    const isStartCode = byte <= 2 && at > 1 && nal[at - 1] === 0 && nal[at - 2] === 0
    // Assertions would cost more than decoding, with a hundred thousand calls per video.
    if (isStartCode) assert.fail("a start code inside a unit")
    if (!prevents) unit.push(byte)
  })
  const last = unit.findLastIndex((byte) => byte !== 0)
  const stop = 8 * last + 7 - Math.log2((unit[last] ?? 0) & -(unit[last] ?? 0))
  let at = 0
  const bits = (count: number): number => {
    let value = 0
    for (let read = 0; read < count; read++, at++) value = 2 * value + (((unit[at >> 3] ?? 0) >> (7 - (at & 7))) & 1)
    if (at > stop) assert.fail("read past the end of a unit")
    return value
  }
  const golomb = (): number => {
    let zeros = 0
    while (bits(1) === 0) zeros++
    return 2 ** zeros - 1 + bits(zeros)
  }
  const bytes = (count: number): Uint8Array => {
    assert.strictEqual(bits((8 - (at % 8)) % 8), 0)
    const start = at / 8
    at += 8 * count
    assert.isAtMost(at, stop)
    return Uint8Array.from(unit.slice(start, start + count))
  }
  return { bits, bytes, golomb, more: () => at < stop }
}

export interface Sequence {
  readonly profile: number
  readonly constraints: number
  readonly level: number
  readonly columns: number
  readonly rows: number
  readonly width: number
  readonly height: number
}

const sequenceOf = (nal: Uint8Array): Sequence => {
  assert.strictEqual(nal[0], 0x67)
  const { bits, golomb, more } = reader(nal.subarray(1))
  const [profile, constraints, level] = [bits(8), bits(8), bits(8)]
  assert.deepStrictEqual([golomb(), golomb(), golomb(), golomb(), bits(1)], [0, 0, 2, 1, 0])
  const [columns, rows] = [golomb() + 1, golomb() + 1]
  assert.strictEqual(bits(1), 1, "frames, not fields")
  bits(1)
  const [left, right, top, bottom] = bits(1) === 1 ? [golomb(), golomb(), golomb(), golomb()] : [0, 0, 0, 0]
  assert.strictEqual(bits(1), 0)
  assert.isFalse(more())
  const [width, height] = [16 * columns - 2 * (left + right), 16 * rows - 2 * (top + bottom)]
  return { profile, constraints, level, columns, rows, width, height }
}

const assertParameters = (nal: Uint8Array): void => {
  assert.strictEqual(nal[0], 0x68)
  const { bits, golomb, more } = reader(nal.subarray(1))
  const found = [
    golomb(),
    golomb(),
    bits(2),
    golomb(),
    golomb(),
    golomb(),
    bits(3),
    golomb(),
    golomb(),
    golomb(),
    bits(3)
  ]
  assert.deepStrictEqual(found, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0b100])
  assert.isFalse(more())
}

/** The content of an `avcC` box with one unit of each kind. */
export const configurationOf = (avcC: Uint8Array): Sequence => {
  const bytes = Buffer.from(avcC)
  const length = bytes.readUInt16BE(6)
  const sps = bytes.subarray(8, 8 + length)
  assert.deepStrictEqual([bytes[0], ...bytes.subarray(1, 4)], [1, ...sps.subarray(1, 4)])
  assert.deepStrictEqual([bytes[4], bytes[5]], [0xff, 0xe1])
  assert.strictEqual(bytes[8 + length], 1)
  const pps = bytes.subarray(11 + length)
  assert.strictEqual(bytes.readUInt16BE(9 + length), pps.length)
  assertParameters(pps)
  return sequenceOf(sps)
}

export interface Frame {
  readonly key: boolean
  /** The number of macroblocks that the frame contains. */
  readonly coded: ReadonlyArray<number>
  /** All macroblocks, 384 bytes each. */
  readonly blocks: ReadonlyArray<Uint8Array>
}

/** Decodes samples in order. Each call takes the next one. */
export const decoder = ({ columns, rows }: Sequence) => {
  let blocks: ReadonlyArray<Uint8Array> = []
  let number = 0
  return (sample: Uint8Array): Frame => {
    assert.strictEqual(Buffer.from(sample).readUInt32BE(0), sample.length - 4, "one unit, all of the sample")
    const key = sample[4] === 0x65
    if (!key) assert.strictEqual(sample[4], 0x41)
    const { bits, bytes, golomb, more } = reader(sample.subarray(5))
    assert.deepStrictEqual([golomb(), golomb(), golomb()], [0, key ? 7 : 5, 0])
    number = key ? 0 : (number + 1) % 16
    assert.strictEqual(bits(4), number, "no frame is missing")
    if (key) golomb()
    assert.strictEqual(bits(key ? 2 : 3), 0)
    assert.deepStrictEqual([golomb(), golomb()], [0, 1])
    const next: Array<Uint8Array> = []
    const coded: Array<number> = []
    while (more()) {
      for (let skipped = key ? 0 : golomb(); skipped > 0; skipped--) {
        next.push(blocks[next.length] ?? assert.fail("nothing to repeat"))
      }
      if (!more()) break
      assert.strictEqual(golomb(), key ? 25 : 30, "plain samples")
      coded.push(next.length)
      next.push(bytes(384))
    }
    assert.strictEqual(next.length, columns * rows)
    blocks = next
    return { key, coded, blocks }
  }
}
