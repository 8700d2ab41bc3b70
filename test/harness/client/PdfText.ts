/** Reads the text of a PDF that Chromium printed. Each page's text has no line breaks where the page has them. */

import { inflateSync } from "node:zlib"

const unicode = (hex: string): string => Buffer.from(hex, "hex").swap16().toString("utf16le")

/** The text of each glyph of a font, from its `ToUnicode` map. */
const glyphsOf = (map: string): ReadonlyMap<string, string> => {
  const glyphs = new Map<string, string>()
  for (const [, block = ""] of map.matchAll(/beginbfchar\s([^]*?)endbfchar/g))
    for (const [, glyph = "", text = ""] of block.matchAll(/<(\w+)>\s*<(\w+)>/g))
      glyphs.set(glyph.toLowerCase(), unicode(text))
  for (const [, block = ""] of map.matchAll(/beginbfrange\s([^]*?)endbfrange/g)) {
    for (const [, first = "", last = "", text = ""] of block.matchAll(/<(\w+)>\s*<(\w+)>\s*<(\w+)>/g)) {
      const start = Number.parseInt(first, 16)
      for (let glyph = start; glyph <= Number.parseInt(last, 16); glyph++) {
        const code = Number.parseInt(text, 16) + glyph - start
        glyphs.set(glyph.toString(16).padStart(first.length, "0"), String.fromCodePoint(code))
      }
    }
  }
  return glyphs
}

export const pagesOf = (pdf: Buffer): ReadonlyArray<string> => {
  const objects = new Map<string, { readonly head: string; readonly stream: () => string }>()
  const text = pdf.toString("latin1")
  for (const match of text.matchAll(/(?:^|\n)(\d+) 0 obj\s([^]*?)(?:stream\r?\n([^]*?)\r?\nendstream|endobj)/g)) {
    const [, id = "", head = "", body = ""] = match
    objects.set(id, {
      head,
      stream: () => {
        const bytes = Buffer.from(body, "latin1")
        return (head.includes("FlateDecode") ? inflateSync(bytes) : bytes).toString("latin1")
      }
    })
  }
  const streamOf = (id: string | undefined) => objects.get(id ?? "")?.stream() ?? ""
  const fontOf = (id: string) => glyphsOf(streamOf(/\/ToUnicode (\d+) 0 R/.exec(objects.get(id)?.head ?? "")?.[1]))
  const textOf = (page: string) => {
    const [, contents] = /\/Contents \[?\s*(\d+) 0 R/.exec(page) ?? []
    const [, fontList = ""] = /\/Font\s*<<([^]*?)>>/.exec(page) ?? []
    const fonts = new Map(
      Array.from(fontList.matchAll(/\/(\w+) (\d+) 0 R/g), ([, name = "", id = ""]) => [name, fontOf(id)] as const)
    )
    let font: ReadonlyMap<string, string> | undefined
    let shown = ""
    for (const [, name, glyphs = ""] of streamOf(contents).matchAll(/\/(\w+) [\d.]+ Tf|<([0-9A-Fa-f]+)>/g)) {
      if (name !== undefined) font = fonts.get(name)
      else for (const [glyph] of glyphs.toLowerCase().matchAll(/.{4}/g)) shown += font?.get(glyph) ?? ""
    }
    // Ligatures become letters again.
    return shown.normalize("NFKC")
  }
  return Array.from(objects.values(), ({ head }) => head)
    .filter((head) => /\/Type\s*\/Page\b/.test(head))
    .map(textOf)
}
