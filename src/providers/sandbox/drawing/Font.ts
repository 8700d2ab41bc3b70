import { outline } from "./Outline.ts"

/** Lengths are in font units, and y grows upwards. */
export interface Font {
  readonly unitsPerEm: number
  readonly ascent: number
  readonly descent: number
  /** A character the font lacks is 0, a box that says so. */
  readonly glyphOf: (character: string) => number
  readonly advanceOf: (glyph: number) => number
  /** SVG path data, empty for a blank. */
  readonly pathOf: (glyph: number) => string
}

/** The map of all of Unicode to glyphs (format 12), in ascending groups. */
const mapOf = (file: Buffer, cmap: number): ((codePoint: number) => number) => {
  const count = file.readUInt16BE(cmap + 2)
  const maps = Array.from({ length: count }, (_, index) => cmap + file.readUInt32BE(cmap + 8 + 8 * index))
  const start = maps.find((at) => file.readUInt16BE(at) === 12)
  if (start === undefined) throw new Error("the font has no map of all of Unicode")
  const groups = Array.from({ length: file.readUInt32BE(start + 12) }, (_, index) => {
    const at = start + 16 + 12 * index
    return { first: file.readUInt32BE(at), last: file.readUInt32BE(at + 4), glyph: file.readUInt32BE(at + 8) }
  })
  return (codePoint) => {
    const group = groups.find(({ last }) => codePoint <= last)
    return group === undefined || codePoint < group.first ? 0 : group.glyph + codePoint - group.first
  }
}

/**
 * Reads a TrueType font. Throws where the file is none. Text is drawn from its shapes alone, because a drawing library
 * would go by the fonts and settings of the machine, complain where there are none, and draw differently on each.
 */
export const parse = (file: Buffer): Font => {
  const tables = new Map<string, number>()
  for (let at = 12; at < 12 + 16 * file.readUInt16BE(4); at += 16) {
    tables.set(file.toString("latin1", at, at + 4), file.readUInt32BE(at + 8))
  }
  const table = (name: string): number => {
    const at = tables.get(name)
    if (at === undefined) throw new Error(`the font has no table ${name}`)
    return at
  }
  const [glyf, head, hhea, hmtx, loca] = [table("glyf"), table("head"), table("hhea"), table("hmtx"), table("loca")]
  const glyphs = file.readUInt16BE(table("maxp") + 4)
  const advances = file.readUInt16BE(hhea + 34)
  const longOffsets = file.readInt16BE(head + 50) === 1
  const offset = (glyph: number): number =>
    longOffsets ? file.readUInt32BE(loca + 4 * glyph) : 2 * file.readUInt16BE(loca + 2 * glyph)
  const find = (glyph: number): number | undefined =>
    glyph < glyphs && offset(glyph) < offset(glyph + 1) ? glyf + offset(glyph) : undefined
  const map = mapOf(file, table("cmap"))
  return {
    unitsPerEm: file.readUInt16BE(head + 18),
    ascent: file.readInt16BE(hhea + 4),
    descent: -file.readInt16BE(hhea + 6),
    glyphOf: (character) => map(character.codePointAt(0) ?? 0),
    advanceOf: (glyph) => file.readUInt16BE(hmtx + 4 * Math.min(glyph, advances - 1)),
    pathOf: (glyph) => outline(file, glyph, find)
  }
}
