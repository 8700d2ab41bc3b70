import type { ChatEvent } from "../../domain/Chat.ts"
import { citationOf, rangeOf, Sources } from "../chat/Sources.ts"
import { asFields, asList, asRecords, asText, type Fields } from "../client/Json.ts"

/** A page that a search found, or a place on its map. */
const sourceOf = (chunk: Fields) => {
  const source = asFields(chunk.web ?? chunk.maps ?? chunk.retrievedContext)
  return { url: source.uri, title: source.title, quote: source.text }
}

type UnitsAt = (place: unknown) => number

const isWithinCharacter = (byte = 0): boolean => byte >> 6 === 0b10

/** How many UTF-16 units precede a byte. Goes on from the last place, since segments mostly come in order. */
const makeUnitsAt = (bytes: Buffer): UnitsAt => {
  let last = 0
  let units = 0
  return (place) => {
    const end = Math.min(Math.max(Math.trunc(Number(place)) || 0, 0), bytes.length)
    if (end < last || isWithinCharacter(bytes[last])) {
      last = 0
      units = 0
    }
    units += bytes.toString("utf8", last, end).length
    last = end
    return units
  }
}

/** The part of a text that a segment means: its offsets count bytes. */
const rangeIn = (content: string, unitsAt: UnitsAt, { endIndex, startIndex = 0, text }: Fields) => {
  const start = unitsAt(startIndex)
  const end = unitsAt(endIndex)
  const part = asText(text)
  if (part === "" || content.slice(start, end) === part) return rangeOf(start, end)
  // Some hosts count from the beginning of a part of the content.
  const found = content.indexOf(part)
  return found < 0 ? {} : rangeOf(found, found + part.length)
}

/** The sources of an answer, which may arrive in pieces with any chunk. */
export class Grounding {
  readonly #candidates: Array<Fields> = []
  #content = ""

  take(candidate: Fields): void {
    if ((candidate.groundingMetadata ?? candidate.citationMetadata ?? undefined) !== undefined) {
      this.#candidates.push(candidate)
    }
  }

  /** Takes a piece of the content, in which the segments lie. */
  takeText(text: string): void {
    this.#content += text
  }

  /** Called once, at the end. */
  push(out: Array<ChatEvent>): void {
    if (this.#candidates.length === 0) return
    const sources = new Sources()
    const unitsAt = makeUnitsAt(Buffer.from(this.#content))
    const cite = (source: Parameters<typeof citationOf>[0] | undefined, segment?: Fields) => {
      const citation = source && citationOf(source, segment && rangeIn(this.#content, unitsAt, segment))
      if (citation !== undefined) sources.take(citation, out)
    }
    const given = this.#candidates.map(({ groundingMetadata }) => {
      const { groundingChunks, groundingSupports } = asFields(groundingMetadata)
      return { found: asList(groundingChunks).map((chunk) => sourceOf(asFields(chunk))), supports: groundingSupports }
    })
    for (const { found, supports } of given) {
      for (const { groundingChunkIndices, segment } of asRecords(supports)) {
        for (const index of asList(groundingChunkIndices)) cite(found[Number(index)], asFields(segment))
      }
    }
    for (const { found } of given) for (const source of found) cite(source)
    for (const { citationMetadata } of this.#candidates) {
      const { citationSources, citations } = asFields(citationMetadata)
      for (const cited of asRecords(citationSources ?? citations)) {
        cite({ url: cited.uri, title: cited.title, quote: undefined }, cited)
      }
    }
  }
}
