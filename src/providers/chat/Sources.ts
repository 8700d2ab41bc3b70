import type { ChatAnswer, ChatEvent, Citation } from "../../domain/Chat.ts"
import { asFields, asList, asRecords, asText, type Fields } from "../client/Json.ts"

/** A range of a text that begins at `offset` of the content; none if it is empty. */
export const rangeOf = (start: unknown, end: unknown, offset = 0): Pick<Citation, "start" | "end"> => {
  const isRange = Number.isInteger(start) && Number.isInteger(end) && Number(start) >= 0 && Number(end) > Number(start)
  return isRange ? { start: Number(start) + offset, end: Number(end) + offset } : {}
}

/** Undefined without an address. */
export const citationOf = (
  { quote, title, url }: { readonly url: unknown; readonly title: unknown; readonly quote: unknown },
  range: Pick<Citation, "start" | "end"> = {}
): Citation | undefined => {
  if (typeof url !== "string" || url === "") return undefined
  return {
    url,
    ...(asText(title) && { title: asText(title) }),
    ...(asText(quote) && { quote: asText(quote) }),
    ...range
  }
}

/** Names differ between hosts. */
const readSource = (given: Fields, offset: number): Citation | undefined =>
  citationOf(
    {
      url: given.url ?? given.link ?? given.uri,
      title: given.title ?? given.name,
      quote: given.content ?? given.snippet ?? given.cited_text
    },
    rangeOf(given.start_index, given.end_index, offset)
  )

/** The sources of one answer: each once per place. */
export class Sources {
  readonly #isNative: boolean
  #known: Set<string> | undefined

  /** `isNative`: the client gets the host's own words as well, so nothing is unread. */
  constructor(isNative = false) {
    this.#isNative = isNative
  }

  take(citation: Citation, out: Array<ChatEvent>): void {
    const { end, start, url } = citation
    // A source with a place needs no mention without one.
    if (this.#isNew(start === undefined ? url : `${start} ${end} ${url}`)) out.push({ type: "citation", citation })
    this.#isNew(url)
  }

  /** The sources without an address, such as files. */
  takeUnread(detail: string, out: Array<ChatEvent>): void {
    if (!this.#isNative && this.#isNew(detail))
      out.push({ type: "unread", unread: { part: "block", detail: detail.slice(0, 100) } })
  }

  /** Takes annotations of a text that begins at `offset` of the content: `url_citation`, nested or flat. */
  takeAnnotations(given: unknown, offset: number, out: Array<ChatEvent>): void {
    for (const annotation of asRecords(given)) {
      const citation = readSource({ ...annotation, ...asFields(annotation.url_citation) }, offset)
      if (citation === undefined) this.takeUnread(`annotation ${asText(annotation.type)}`, out)
      else this.take(citation, out)
    }
  }

  /** Takes a list of sources, or of their addresses. */
  takeList(given: unknown, out: Array<ChatEvent>): void {
    for (const source of asList(given)) {
      const citation = readSource(typeof source === "string" ? { url: source } : asFields(source), 0)
      if (citation !== undefined) this.take(citation, out)
    }
  }

  #isNew(key: string): boolean {
    this.#known ??= new Set()
    if (this.#known.has(key)) return false
    this.#known.add(key)
    return true
  }
}

/** The sources of a whole answer. */
export const collectSources = (
  fill: (sources: Sources, out: Array<ChatEvent>) => void,
  isNative = false
): Pick<ChatAnswer, "citations" | "unread"> => {
  const out: Array<ChatEvent> = []
  fill(new Sources(isNative), out)
  return {
    citations: out.flatMap((event) => (event.type === "citation" ? [event.citation] : [])),
    unread: out.flatMap((event) => (event.type === "unread" ? [event.unread] : []))
  }
}
