/** Draws texts in white on one dark colour: a picture without any library. */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { crc32, deflate } from "node:zlib"
import { Effect } from "effect"
import type { Pixels } from "../../domain/Media.ts"

/** The letters from U+0020 to U+007E, and a box for any other: five columns each, the lowest bit on top. */
const font = Buffer.from(
  [
    "AAAAAAAAAF8AAAAHAAcAFH8UfxQkKn8qEiMTCGRiNklWIFAACAcDAAAcIkEAAEEiHAAqHH8cKggIPggIAIBwMAAICAgICAAAYGAAIBAIBAI+UUlF",
    "PgBCf0AAcklJSUYhQUlNMxgUEn8QJ0VFRTk8SklJMUEhEQkHNklJSTZGSUkpHgAAFAAAAEA0AAAACBQiQRQUFBQUAEEiFAgCAVkJBj5BXVlOfBIR",
    "Enx/SUlJNj5BQUEif0FBQT5/SUlJQX8JCQkBPkFBUXN/CAgIfwBBf0EAIEBBPwF/CBQiQX9AQEBAfwIcAn9/BAgQfz5BQUE+fwkJCQY+QVEhXn8J",
    "GSlGJklJSTIDAX8BAz9AQEA/HyBAIB8/QDhAP2MUCBRjAwR4BANhWUlNQwB/QUFBAgQIECAAQUFBfwQCAQIEQEBAQEAAAwcIACBUVHhAfyhERDg4",
    "REREKDhERCh/OFRUVBgACH4JAhikpJx4fwgEBHgARH1AACBAQD0AfxAoRAAAQX9AAHwEeAR4fAgEBHg4REREOPwYJCQYGCQkGPx8CAQECEhUVFQk",
    "BAQ/RCQ8QEAgfBwgQCAcPEAwQDxEKBAoREyQkJB8RGRUTEQACDZBAAAAdwAAAEE2CAACAQIEAn9BQUF/"
  ].join(""),
  "base64"
)

/** In dots, with the gap to the next letter and line. */
const letterWidth = 6
const letterHeight = 9
const box = "\x7f"

/** What follows is not drawn. */
const maxLetters = 1_000

/** Accents are left out, and letters of other alphabets become boxes. */
const toLetters = (text: string): string => {
  const letters = text
    .slice(0, 2 * maxLetters)
    .normalize("NFKD")
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\S\n]+/g, " ")
    .replaceAll(/\p{M}/gu, "")
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/[\u201c\u201d]/g, '"')
    .replaceAll(/\p{Pd}/gu, "-")
    .replaceAll(/[^\n -~]/gu, box)
    .trim()
  return letters.length <= maxLetters ? letters : `${letters.slice(0, maxLetters)}...`
}

/** Breaks at spaces, and inside a word only if it is longer than a line. */
const wrap = (text: string, columns: number): ReadonlyArray<string> =>
  text.split("\n").flatMap((paragraph) => {
    const lines: Array<string> = []
    let rest = paragraph
    while (rest.length > columns) {
      const space = rest.lastIndexOf(" ", columns)
      lines.push(rest.slice(0, space > 0 ? space : columns))
      rest = rest.slice(space > 0 ? space + 1 : columns)
    }
    return [...lines, rest]
  })

/** A text and its place, in pixels. */
interface Lettering extends Pixels {
  readonly text: string
  readonly x: number
  readonly y: number
  /** The largest and the smallest size of a dot. */
  readonly dots: readonly [largest: number, smallest: number]
}

/** In the largest dots at which all of the text fits; in the smallest the text is cut. */
const fit = ({ dots: [largest, smallest], height, text, width }: Lettering) => {
  const letters = toLetters(text)
  const longestWord = Math.max(...letters.split(/\s/).map((word) => word.length))
  for (let dot = largest; ; dot--) {
    const columns = Math.max(1, Math.floor(width / (letterWidth * dot)))
    const rows = Math.max(1, Math.floor(height / (letterHeight * dot)))
    const lines = wrap(letters, columns)
    if (dot <= smallest || (lines.length <= rows && longestWord <= columns)) return { dot, lines: lines.slice(0, rows) }
  }
}

export interface Drawing extends Pixels {
  /** Red, green and blue of the background. */
  readonly colour: Uint8Array
  /** The scan lines of a PNG with one bit a pixel, set for white. */
  readonly scanLines: Buffer
  /** In bytes, of a scan line with the filter's number before it. */
  readonly stride: number
}

const drawText = ({ scanLines, stride }: Drawing, lettering: Lettering): void => {
  const { dot, lines } = fit(lettering)
  const drawDot = (start: number, left: number): void => {
    for (let x = left; x < left + dot; x++) {
      const at = start + 1 + (x >> 3)
      scanLines[at] = (scanLines[at] ?? 0) | (0x80 >> (x & 7))
    }
  }
  for (const [row, line] of lines.entries()) {
    for (let down = 0; down < 8; down++) {
      const start = stride * (lettering.y + dot * (letterHeight * row + down))
      for (let index = 0; index < line.length; index++) {
        const column = 5 * (line.charCodeAt(index) - 0x20)
        for (let right = 0; right < 5; right++) {
          const isSet = (((font[column + right] ?? 0) >> down) & 1) === 1
          if (isSet) drawDot(start, lettering.x + dot * (letterWidth * index + right))
        }
      }
      for (let copy = 1; copy < dot; copy++) scanLines.copyWithin(start + copy * stride, start, start + stride)
    }
  }
}

/** The prompt, and below it a note. The same texts give the same picture. */
export const draw = ({ height, width }: Pixels, prompt: string, note: string): Drawing => {
  const stride = 1 + Math.ceil(width / 8)
  const seed = createHash("sha256").update(prompt).update("\0").update(note).digest()
  const drawing = {
    width,
    height,
    colour: seed.subarray(0, 3).map((value) => value >> 1),
    scanLines: Buffer.alloc(stride * height),
    stride
  }
  const side = Math.min(width, height)
  const margin = Math.floor(side / 14)
  const [inner, noteHeight] = [width - 2 * margin, Math.floor(side / 9)]
  const [large, small] = [Math.max(1, Math.floor(side / 100)), Math.max(1, Math.round(side / 200))]
  const below = height - margin - noteHeight
  const promptPlace = { x: margin, y: margin, width: inner, height: below - 2 * margin }
  drawText(drawing, { ...promptPlace, text: prompt, dots: [large, Math.ceil(large / 5)] })
  drawText(drawing, { text: note, x: margin, y: below, width: inner, height: noteHeight, dots: [small, 1] })
  return drawing
}

export const isWhite = ({ scanLines, stride }: Drawing, x: number, y: number): boolean =>
  (((scanLines[stride * y + 1 + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1) === 1

const chunk = (type: string, data: Uint8Array): Buffer => {
  const framed = Buffer.alloc(12 + data.length)
  framed.writeUInt32BE(data.length)
  framed.write(type, 4, "latin1")
  framed.set(data, 8)
  framed.writeUInt32BE(crc32(framed.subarray(4, 8 + data.length)), 8 + data.length)
  return framed
}

const compress = promisify(deflate)
const signature = Buffer.from("89504e470d0a1a0a", "hex")

export const encodePng = ({ colour, height, scanLines, width }: Drawing): Effect.Effect<Buffer> =>
  Effect.promise(async () => {
    const header = Buffer.alloc(13)
    header.writeUInt32BE(width)
    header.writeUInt32BE(height, 4)
    header.set([1, 3], 8)
    const palette = Buffer.from([...colour, 255, 255, 255])
    const data = await compress(scanLines, { level: 1 })
    const chunks = [chunk("IHDR", header), chunk("PLTE", palette), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]
    return Buffer.concat([signature, ...chunks])
  })
