import { macroblock, macroblockBytes } from "./Avc.ts"

/** Pixels as they come: red, green and blue, a byte each, row by row. */
export interface Pixels {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

const half = macroblock / 2
/** Where the blue and the red difference begin in a macroblock. */
const [blueAt, redAt] = [macroblock * macroblock, macroblock * macroblock + half * half]

/** Black and white, as luma. */
export const [black, white] = [16, 235]
/** Neither colour difference. */
const grey = 128

/**
 * A picture's macroblocks, row by row, as BT.601 in limited range, so that no sample is ever a zero. Its last row and
 * column are repeated where it ends inside a macroblock.
 */
export const macroblocks = ({ data, height, width }: Pixels): Uint8Array => {
  const [columns, rows] = [Math.ceil(width / macroblock), Math.ceil(height / macroblock)]
  const all = new Uint8Array(columns * rows * macroblockBytes)
  const pixel = (x: number, y: number): number => 3 * (Math.min(y, height - 1) * width + Math.min(x, width - 1))
  for (let y = 0; y < rows * macroblock; y += 2) {
    for (let x = 0; x < columns * macroblock; x += 2) {
      const start = (Math.floor(y / macroblock) * columns + Math.floor(x / macroblock)) * macroblockBytes
      const [inY, inX] = [y % macroblock, x % macroblock]
      let [red, green, blue] = [0, 0, 0]
      for (let corner = 0; corner < 4; corner++) {
        const [dx, dy] = [corner & 1, corner >> 1]
        const at = pixel(x + dx, y + dy)
        const [r = 0, g = 0, b = 0] = [data[at], data[at + 1], data[at + 2]]
        all[start + (inY + dy) * macroblock + inX + dx] = black + (65.481 * r + 128.553 * g + 24.966 * b) / 255 + 0.5
        red += r / 4
        green += g / 4
        blue += b / 4
      }
      const difference = (inY / 2) * half + inX / 2
      all[start + blueAt + difference] = grey + (-37.797 * red - 74.203 * green + 112 * blue) / 255 + 0.5
      all[start + redAt + difference] = grey + (112 * red - 93.786 * green - 18.214 * blue) / 255 + 0.5
    }
  }
  return all
}

/** A macroblock with an even band of rows across it, white in its first columns and black in the others. */
export const withBand = (block: Uint8Array, rows: readonly [number, number], filled: number): Uint8Array => {
  const banded = Uint8Array.from(block)
  const [from, to] = rows
  for (let y = from; y < to; y++) {
    for (let x = 0; x < macroblock; x++) banded[y * macroblock + x] = x < filled ? white : black
  }
  for (const start of [blueAt, redAt]) banded.fill(grey, start + (from / 2) * half, start + (to / 2) * half)
  return banded
}
