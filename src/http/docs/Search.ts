import { Html, textOf } from "./DocsPage.ts"

/** An entry of the search index. Its field names are short, because a browser loads the whole index. */
export interface SearchEntry {
  readonly page: string
  /** The section's title. It is empty for the text before the first section. */
  readonly section: string
  readonly url: string
  readonly text: string
}

const heading = /<h[1-4][^>]* id="([^"]+)"[^>]*>(.*?)<\/h[1-4]>/gs
const pageTitle = /<h1[^>]*>.*?<\/h1>/s
/** A table that is not searched, because each of its rows also has a section. */
const unsearchedTable = /<table class="unsearched">.*?<\/table>/gs

/** Returns an entry for each heading with an anchor, and one for the text before them. */
export const entriesOf = (page: string, url: string, { text }: Html): ReadonlyArray<SearchEntry> => {
  const body = text.replace(pageTitle, "").replaceAll(unsearchedTable, "")
  const headings = [...body.matchAll(heading)]
  const textBetween = (start: number, end: number | undefined) => textOf(new Html(body.slice(start, end)))
  return [
    { page, section: "", url, text: textBetween(0, headings[0]?.index) },
    ...headings.map(([tag, anchor, title = ""], at) => ({
      page,
      section: textOf(new Html(title)),
      url: `${url}#${anchor}`,
      text: textBetween((headings[at]?.index ?? 0) + tag.length, headings[at + 1]?.index)
    }))
  ].filter(({ section, text: words }) => section !== "" || words !== "")
}
