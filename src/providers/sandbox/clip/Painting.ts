import { type Box, lettering } from "../drawing/Lettering.ts"
import { markup, type Scene } from "../drawing/Scene.ts"
import type { Tools } from "../drawing/Studio.ts"
import { type Grid, macroblock, macroblockBytes } from "./Avc.ts"
import { macroblocks } from "./Planes.ts"

/** What a clip shows; the reference is a small picture that sharp can decode. */
export interface Subject {
  readonly prompt: string
  readonly note: string
  readonly seconds: number
  readonly reference: Uint8Array | undefined
}

export const width = 640
export const height = 360
export const grid: Grid = { columns: width / macroblock, rows: Math.ceil(height / macroblock), height }

/** Where a reference goes, right of the prompt. */
export const referenceBox: Box = { x: 400, y: 28, width: 208, height: 192 }

/** In macroblocks, so that a second more changes few of them. */
export const digit = { columns: 3, rows: 5 }
const panel = "#10131a"

/** The picture behind all frames, and each digit, as macroblocks. */
export interface Painting {
  readonly base: (at: number) => Uint8Array
  readonly digit: (value: number, at: number) => Uint8Array
}

const sceneOf = ({ note, prompt, reference }: Subject): Scene => ({
  width,
  height,
  prompt,
  promptBox: { x: 32, y: 28, width: reference === undefined ? 576 : 344, height: 192 },
  sizes: [48, 40, 32, 26, 22, 18],
  note,
  noteBox: { x: 32, y: 288, width: 384, height: 24 }
})

const blocksOf = (all: Uint8Array) => (at: number) => all.subarray(at * macroblockBytes, (at + 1) * macroblockBytes)

const digitsMarkup = ({ font }: Tools): Buffer => {
  const cell = { width: digit.columns * macroblock, height: digit.rows * macroblock }
  const drawn = Array.from({ length: 10 }, (_, value) => {
    const box = { x: value * cell.width, y: 0, ...cell }
    return lettering(font, String(value), { ...box, x: box.x + 3 }, [64], `fill="#fff"`)
  })
  const size = `width="${10 * cell.width}" height="${cell.height}"`
  return Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" ${size}><rect ${size} fill="${panel}"/>${drawn.join("")}</svg>`
  )
}

export const paint = async (tools: Tools, subject: Subject): Promise<Painting> => {
  const pixels = async (svg: Buffer, over: ReadonlyArray<{ input: Uint8Array; left: number; top: number }>) => {
    const picture = tools
      .sharp(svg)
      .composite(over.map(({ input, ...place }) => ({ input: Buffer.from(input), ...place })))
    const { data, info } = await picture.removeAlpha().raw().toBuffer({ resolveWithObject: true })
    return macroblocks({ data, width: info.width, height: info.height })
  }
  const { reference } = subject
  const place = { left: referenceBox.x, top: referenceBox.y }
  const base = await pixels(
    markup(tools, sceneOf(subject)),
    reference === undefined ? [] : [{ input: reference, ...place }]
  )
  const digits = blocksOf(await pixels(digitsMarkup(tools), []))
  return {
    base: blocksOf(base),
    digit: (value, at) =>
      digits(Math.floor(at / digit.columns) * 10 * digit.columns + value * digit.columns + (at % digit.columns))
  }
}
