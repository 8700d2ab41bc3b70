import type { Font } from "./Font.ts"

/** In pixels, y downwards. */
export interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const lineHeight = 1.25
/** Characters looked at; a longer text is cut. */
export const mostRead = 1_000
const mark = "…"

/** What can be drawn of a text: composed, without what is invisible, on lines of its own making. */
const drawable = (text: string): ReadonlyArray<string> => {
  const start = Array.from(text.slice(0, 2 * mostRead))
    .slice(0, mostRead)
    .join("")
  const read = start.length < text.length ? `${start}${mark}` : start
  return read
    .normalize("NFC")
    .replaceAll(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
    .replaceAll(/(?!\n)[\p{Cc}\p{Zs}]+/gu, " ")
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()
    .split("\n")
    .map((line) => line.trim())
}

const measure = (font: Font, text: string): number =>
  Array.from(text).reduce((sum, character) => sum + font.advanceOf(font.glyphOf(character)), 0)

/** A word too wide for a line goes over several. */
const broken = (font: Font, word: string, most: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let [piece, width] = ["", 0]
  for (const character of word) {
    const advance = measure(font, character)
    if (piece !== "" && width + advance > most) {
      pieces.push(piece)
      ;[piece, width] = ["", 0]
    }
    piece += character
    width += advance
  }
  return [...pieces, piece]
}

/** Lines at most `most` font units wide. */
const wrap = (font: Font, paragraphs: ReadonlyArray<string>, most: number): ReadonlyArray<string> => {
  const space = measure(font, " ")
  return paragraphs.flatMap((paragraph) => {
    const lines: Array<string> = []
    let [line, width] = ["", 0]
    for (const word of paragraph.split(" ").flatMap((whole) => broken(font, whole, most))) {
      const wide = measure(font, word)
      if (line !== "" && width + space + wide > most) {
        lines.push(line)
        ;[line, width] = ["", 0]
      }
      width += line === "" ? wide : space + wide
      line += line === "" ? word : ` ${word}`
    }
    return [...lines, line]
  })
}

interface Fitted {
  /** Of the letters, in pixels. */
  readonly size: number
  readonly lines: ReadonlyArray<string>
}

/** The largest of the sizes, which descend, at which the text fits; at the last one it is cut to what fits. */
const fit = (font: Font, text: string, box: Box, sizes: ReadonlyArray<number>): Fitted => {
  const paragraphs = drawable(text)
  let fitted: Fitted = { size: 1, lines: [] }
  for (const size of sizes) {
    const room = Math.max(1, Math.floor(box.height / (size * lineHeight)))
    const most = (box.width * font.unitsPerEm) / size
    const lines = wrap(font, paragraphs, most)
    if (lines.length <= room) return { size, lines }
    const last = Array.from(lines[room - 1] ?? "")
    while (last.length > 0 && measure(font, `${last.join("")}${mark}`) > most) last.pop()
    fitted = { size, lines: [...lines.slice(0, room - 1), `${last.join("").trimEnd()}${mark}`] }
  }
  return fitted
}

/**
 * Text as SVG, from the top left of its box, in the largest of the sizes (pixels, descending) at which it fits. None of
 * the text itself gets into the markup, only shapes.
 */
export const lettering = (font: Font, text: string, box: Box, sizes: ReadonlyArray<number>, style: string): string => {
  const { lines, size } = fit(font, text, box, sizes)
  const scale = size / font.unitsPerEm
  const drawn = lines.map((line, index) => {
    const baseline = box.y + index * size * lineHeight + font.ascent * scale
    let pen = 0
    const shapes = Array.from(line).map((character) => {
      const glyph = font.glyphOf(character)
      const [path, x] = [font.pathOf(glyph), pen]
      pen += font.advanceOf(glyph)
      return path === "" ? "" : `<path transform="translate(${x})" d="${path}"/>`
    })
    return `<g transform="translate(${box.x} ${baseline.toFixed(2)}) scale(${scale} -${scale})">${shapes.join("")}</g>`
  })
  return `<g ${style}>${drawn.join("")}</g>`
}
