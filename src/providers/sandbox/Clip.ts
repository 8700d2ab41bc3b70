/**
 * H.264, constrained baseline, as little of it as a clip needs that changes once a second: macroblocks as plain samples
 * (I_PCM), and, in later frames, those left out that are as they were (P_Skip). No encoder that runs in Node is as small.
 */
import { Effect, Stream } from "effect"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { head, u32 } from "./Mp4.ts"

/** Pixels as they come: red, green and blue, a byte each, row by row. */
export interface Pixels {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

/** A picture of whole macroblocks, and where it lies in the clip, in macroblocks. */
export interface Patch extends Pixels {
  readonly row: number
  readonly column: number
}

export const width = 640
export const height = 360
/** Pixels on a side. */
export const macroblock = 16
/** 256 of luma, then 64 each of blue and of red difference. */
const macroblockBytes = 384
const [columns, rows] = [width / macroblock, Math.ceil(height / macroblock)]

const framesPerSecond = 24
/** Between frames that need no other; most clips are shorter. */
const keySeconds = 30
/** For 640 by 360 pixels at level 3: frames in the order in which they are shown, of one reference. */
const configuration = Buffer.from("0142c01effe1000a6742c01eda0280bfe54001000468ce3c80", "hex")

/** The macroblock at a place of a picture, as BT.601 in limited range, so that no sample is ever a zero. */
const macroblockOf = ({ data, height, width }: Pixels, row: number, column: number): Uint8Array => {
  const block = new Uint8Array(macroblockBytes)
  for (let y = 0; y < macroblock; y++) {
    for (let x = 0; x < macroblock; x++) {
      const at = 3 * (Math.min(row * macroblock + y, height - 1) * width + column * macroblock + x)
      const [r = 0, g = 0, b = 0] = [data[at], data[at + 1], data[at + 2]]
      block[y * macroblock + x] = 16.5 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
      if (x % 2 === 1 || y % 2 === 1) continue
      const difference = 256 + (y * macroblock) / 4 + x / 2
      block[difference] = 128.5 + (-37.797 * r - 74.203 * g + 112 * b) / 255
      block[difference + 64] = 128.5 + (112 * r - 93.786 * g - 18.214 * b) / 255
    }
  }
  return block
}

type Blocks = ReadonlyMap<number, Uint8Array>

/** By their place in the clip, ascending. */
const blocksOf = (patch: Patch): Blocks => {
  const across = patch.width / macroblock
  return new Map(
    Array.from({ length: across * Math.ceil(patch.height / macroblock) }, (_, index) => {
      const [row, column] = [Math.floor(index / across), index % across]
      return [(patch.row + row) * columns + patch.column + column, macroblockOf(patch, row, column)]
    })
  )
}

/** An unsigned number, Exp-Golomb coded. */
const golomb = (value: number): string => {
  const bits = (value + 1).toString(2)
  return bits.padStart(2 * bits.length - 1, "0")
}

const packed = (bits: string): Buffer =>
  Buffer.from(Array.from(bits.match(/.{1,8}/g) ?? [], (byte) => Number.parseInt(byte.padEnd(8, "0"), 2)))

/** A sample of one slice. No two bytes in it are zeros, so that it needs no escapes. */
const sample = (header: number, start: string, kind: number, blocks: Blocks, isSkipping: boolean): Buffer => {
  const parts: Array<Uint8Array> = [Buffer.of(header)]
  let [bits, next] = [start, 0]
  for (const [at, block] of blocks) {
    parts.push(packed(`${bits}${isSkipping ? golomb(at - next) : ""}${golomb(kind)}`), block)
    bits = ""
    next = at + 1
  }
  const skipped = next < columns * rows ? golomb(columns * rows - next) : ""
  const unit = Buffer.concat([...parts, packed(`${bits}${skipped}1`)])
  return Buffer.concat([u32(unit.length), unit])
}

/** A whole picture, that needs no other. `number` counts those of a stream. */
const keyFrame = (number: number, blocks: Blocks): Buffer =>
  sample(
    0x65,
    `${[0, 7, 0].map(golomb).join("")}0000${golomb(number % 2)}00${golomb(0)}${golomb(1)}`,
    25,
    blocks,
    false
  )

/** The picture before, but for some macroblocks. `number` counts from the last key frame. */
const nextFrame = (number: number, blocks: Blocks): Buffer => {
  const counted = (number % 16).toString(2).padStart(4, "0")
  return sample(0x41, `${[0, 5, 0].map(golomb).join("")}${counted}000${golomb(0)}${golomb(1)}`, 30, blocks, true)
}

/** An MP4 file of so many seconds, each of which shows a patch of its own, a second of it in memory at a time. */
export const clip = <E>(
  base: Pixels,
  patchAt: (second: number) => Effect.Effect<Patch, E>,
  seconds: number
): Stream.Stream<Uint8Array, E> => {
  const all = blocksOf({ ...base, row: 0, column: 0 })
  const framesOf = Effect.fnUntraced(function* (second: number) {
    const patch = blocksOf(yield* patchAt(second))
    yield* EventLoop.turn
    return Array.from({ length: framesPerSecond }, (_, index) => {
      const number = (second % keySeconds) * framesPerSecond + index
      if (number === 0) return keyFrame(second / keySeconds, new Map([...all, ...patch]))
      return nextFrame(number, index === 0 ? patch : new Map())
    })
  })
  /** Frames of a kind are of one size, because every patch covers the same macroblocks. */
  const start = Effect.gen(function* () {
    const patch = blocksOf(yield* patchAt(0))
    const [key, tick, still] = [keyFrame(0, all).length, nextFrame(1, patch).length, nextFrame(1, new Map()).length]
    const sizes = Array.from({ length: seconds * framesPerSecond }, (_, index) => {
      if (index % (keySeconds * framesPerSecond) === 0) return key
      return index % framesPerSecond === 0 ? tick : still
    })
    const keyFrames = sizes.flatMap((size, index) => (size === key ? [index] : []))
    return head({ width, height, framesPerSecond, configuration, sizes, keyFrames })
  })
  const rest = Stream.mapEffect(Stream.range(0, seconds - 1), (second) =>
    Effect.map(framesOf(second), (frames) => Buffer.concat(frames))
  )
  return Stream.concat(Stream.fromEffect(start), rest)
}
