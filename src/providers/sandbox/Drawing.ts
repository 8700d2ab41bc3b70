/** Draws white text on a dark background, without a graphics library. */
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { crc32, deflate } from "node:zlib"
import { Effect } from "effect"
import type { Pixels } from "../../domain/Media.ts"

/** Glyphs for U+0020 to U+007E, and a box for all others. Each has five columns with the lowest bit on top. */
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

/** In dots, including the gap to the next letter and line. */
const letterWidth = 6
const letterHeight = 9
const box = "\x7f"

/** Further letters are not drawn. */
const maxLetters = 1_000

/** Removes accents. Letters of other alphabets become boxes. */
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

/** Breaks lines at spaces, and inside a word only if it exceeds a line. */
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

/** A text and its area, in pixels. */
interface TextArea extends Pixels {
  readonly text: string
  readonly x: number
  readonly y: number
  /** The maximum and minimum size of a dot, in pixels. */
  readonly dotSizes: readonly [max: number, min: number]
}

/** Returns the largest dot size at which the text fits. At the minimum size, the text is truncated. */
const fitText = ({ dotSizes: [max, min], height, text, width }: TextArea) => {
  const letters = toLetters(text)
  const maxWordLength = Math.max(...letters.split(/\s/).map((word) => word.length))
  for (let dot = max; ; dot--) {
    const columns = Math.max(1, Math.floor(width / (letterWidth * dot)))
    const rows = Math.max(1, Math.floor(height / (letterHeight * dot)))
    const lines = wrap(letters, columns)
    if (dot <= min || (lines.length <= rows && maxWordLength <= columns)) return { dot, lines: lines.slice(0, rows) }
  }
}

export interface Drawing extends Pixels {
  /** The background as red, green and blue. */
  readonly colour: Uint8Array
  /** PNG scan lines with one bit per pixel. A set bit is white. */
  readonly scanLines: Buffer
  /** Bytes per scan line, including its filter byte. */
  readonly stride: number
}

const drawText = ({ scanLines, stride }: Drawing, area: TextArea): void => {
  const { dot, lines } = fitText(area)
  const drawDot = (start: number, startX: number): void => {
    for (let x = startX; x < startX + dot; x++) {
      const byteIndex = start + 1 + (x >> 3)
      scanLines[byteIndex] = (scanLines[byteIndex] ?? 0) | (0x80 >> (x & 7))
    }
  }
  for (const [row, line] of lines.entries()) {
    for (let dotRow = 0; dotRow < 8; dotRow++) {
      const start = stride * (area.y + dot * (letterHeight * row + dotRow))
      for (let index = 0; index < line.length; index++) {
        const column = 5 * (line.charCodeAt(index) - 0x20)
        for (let dotColumn = 0; dotColumn < 5; dotColumn++) {
          const isSet = (((font[column + dotColumn] ?? 0) >> dotRow) & 1) === 1
          if (isSet) drawDot(start, area.x + dot * (letterWidth * index + dotColumn))
        }
      }
      for (let copyIndex = 1; copyIndex < dot; copyIndex++)
        scanLines.copyWithin(start + copyIndex * stride, start, start + stride)
    }
  }
}

/** Draws the prompt with a note below. The same texts give the same image. */
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
  const [innerWidth, noteHeight] = [width - 2 * margin, Math.floor(side / 9)]
  const [maxDot, noteDot] = [Math.max(1, Math.floor(side / 100)), Math.max(1, Math.round(side / 200))]
  const noteTop = height - margin - noteHeight
  const promptArea = { x: margin, y: margin, width: innerWidth, height: noteTop - 2 * margin }
  drawText(drawing, { ...promptArea, text: prompt, dotSizes: [maxDot, Math.ceil(maxDot / 5)] })
  drawText(drawing, {
    text: note,
    x: margin,
    y: noteTop,
    width: innerWidth,
    height: noteHeight,
    dotSizes: [noteDot, 1]
  })
  return drawing
}

export const isWhite = ({ scanLines, stride }: Drawing, x: number, y: number): boolean =>
  (((scanLines[stride * y + 1 + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1) === 1

const chunk = (type: string, data: Uint8Array): Buffer => {
  const buffer = Buffer.alloc(12 + data.length)
  buffer.writeUInt32BE(data.length)
  buffer.write(type, 4, "latin1")
  buffer.set(data, 8)
  buffer.writeUInt32BE(crc32(buffer.subarray(4, 8 + data.length)), 8 + data.length)
  return buffer
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
