import type { ChatAnswer, ChatEvent, Citation } from "../../domain/Chat.ts"
import { asFields, asList, asRecords, asText, type Fields } from "../client/JsonFields.ts"

/** Returns a range shifted by `offset`, the start of its text in the content. Empty if there is no valid range. */
export const rangeOf = (start: unknown, end: unknown, offset = 0): Pick<Citation, "start" | "end"> => {
  const isRange = Number.isInteger(start) && Number.isInteger(end) && Number(start) >= 0 && Number(end) > Number(start)
  return isRange ? { start: Number(start) + offset, end: Number(end) + offset } : {}
}

/** Returns undefined without a URL. */
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

/** Reads a source. Field names differ between providers. */
const readSource = (source: Fields, offset: number): Citation | undefined =>
  citationOf(
    {
      url: source.url ?? source.link ?? source.uri,
      title: source.title ?? source.name,
      quote: source.content ?? source.snippet ?? source.cited_text
    },
    rangeOf(source.start_index, source.end_index, offset)
  )

/** Collects the sources of an answer, each once per range. */
export class Sources {
  readonly #isNative: boolean
  #keys: Set<string> | undefined

  /** `isNative`: the client also receives the provider's own fields, so nothing counts as unread. */
  constructor(isNative = false) {
    this.#isNative = isNative
  }

  take(citation: Citation, out: Array<ChatEvent>): void {
    const { end, start, url } = citation
    // A source with a range is not repeated without one.
    if (this.#isNew(start === undefined ? url : `${start} ${end} ${url}`)) out.push({ type: "citation", citation })
    this.#isNew(url)
  }

  /** Reports a source without a URL, such as a file. */
  takeUnread(detail: string, out: Array<ChatEvent>): void {
    if (!this.#isNative && this.#isNew(detail))
      out.push({ type: "unread", unread: { part: "block", detail: detail.slice(0, 100) } })
  }

  /** Adds annotations of a text that starts at `offset` of the content. `url_citation` may be nested or flat. */
  takeAnnotations(annotations: unknown, offset: number, out: Array<ChatEvent>): void {
    for (const annotation of asRecords(annotations)) {
      const citation = readSource({ ...annotation, ...asFields(annotation.url_citation) }, offset)
      if (citation === undefined) this.takeUnread(`annotation ${asText(annotation.type)}`, out)
      else this.take(citation, out)
    }
  }

  /** Adds a list of sources or URLs. */
  takeList(sources: unknown, out: Array<ChatEvent>): void {
    for (const source of asList(sources)) {
      const citation = readSource(typeof source === "string" ? { url: source } : asFields(source), 0)
      if (citation !== undefined) this.take(citation, out)
    }
  }

  #isNew(key: string): boolean {
    this.#keys ??= new Set()
    if (this.#keys.has(key)) return false
    this.#keys.add(key)
    return true
  }
}

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
