import { Marked, type Tokens } from "marked"
import { codeBlock, Html, html } from "./Html.ts"

interface MarkdownOptions {
  /** How far headings are moved down; the highest ones have anchors where they are not. */
  readonly below?: number
  /** The class of a block, by its language. */
  readonly samples?: Readonly<Record<string, string>>
  /** Gives undefined for what the reader cannot see. */
  readonly resolve?: (target: string) => string | undefined
}

/** As hosts of Markdown derive it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .trim()
    .replaceAll(/\s/g, "-")

/** A table with more columns shows each cell in a line of its own on narrow screens. */
const narrowColumns = 3

/** What a text has of HTML is shown as text. */
const rendererOf = ({ below = 0, resolve = (target) => target, samples = {} }: MarkdownOptions): Marked =>
  new Marked({
    renderer: {
      html: ({ text }) => html`${text}`.text,
      codespan: ({ text }) => html`<code>${text}</code>`.text,
      code: ({ lang = "", text }) => codeBlock("Example", text, samples[lang]).text,
      heading({ depth, text, tokens }) {
        const tag = new Html(`h${depth + below}`)
        const anchor = below === 0 ? html` id="${anchorOf(text)}"` : undefined
        return html`<${tag}${anchor}>${new Html(this.parser.parseInline(tokens))}</${tag}>`.text
      },
      link({ href, tokens }) {
        const target = resolve(href)
        const content = new Html(this.parser.parseInline(tokens))
        return (target === undefined ? content : html`<a href="${target}">${content}</a>`).text
      },
      table({ header, rows }) {
        const contentOf = ({ tokens }: Tokens.TableCell) => new Html(this.parser.parseInline(tokens))
        const heads = header.map((cell) => html`<th scope="col">${contentOf(cell)}</th>`)
        const isTitled = header.some(({ text }) => text !== "")
        const cellOf = (cell: Tokens.TableCell, column: number) =>
          html`<td data-label="${header[column]?.text.replaceAll("`", "")}">${contentOf(cell)}</td>`
        return html`<table class="${header.length > narrowColumns ? "wide" : ""}">
${isTitled ? html`<thead><tr>${heads}</tr></thead>` : undefined}
<tbody>${rows.map((cells) => html`<tr>${cells.map(cellOf)}</tr>`)}</tbody></table>`.text
      }
    }
  })

const ofDescriptions = rendererOf({
  below: 1,
  // The class of a block that is only shown with the examples of its language.
  samples: { sh: "sample curl", python: "sample python", js: "sample javascript" }
})

/** A description of the published document. */
export const markdown = (text = ""): Html => new Html(ofDescriptions.parse(text, { async: false }))

/** A description without paragraphs. */
export const inline = (text: string): Html => new Html(ofDescriptions.parseInline(text, { async: false }))

export interface Rendered {
  readonly content: Html
  /** The headings of the second level. */
  readonly headings: ReadonlyArray<{ readonly anchor: string; readonly title: string }>
}

const isHeading = (token: { readonly type: string }): token is Tokens.Heading => token.type === "heading"

/** Renders a page of its own. */
export const renderPage = (text: string, resolve: (target: string) => string | undefined): Rendered => {
  const renderer = rendererOf({ resolve })
  const tokens = renderer.lexer(text)
  const headings = tokens.filter(isHeading).filter(({ depth }) => depth === 2)
  return {
    content: new Html(renderer.parser(tokens)),
    headings: headings.map(({ text: heading }) => ({ anchor: anchorOf(heading), title: heading.replaceAll("`", "") }))
  }
}
