import { Marked, type Token, type Tokens } from "marked"
import { codeBlock, codeChoice, Html, html, type Language } from "./DocsPage.ts"
import type { PageContent } from "./Site.ts"

interface MarkdownOptions {
  /** The number of levels by which headings move down, default 0. Only without it do headings get anchors. */
  readonly headingOffset?: number
  /** Maps a link's target to its address. Returns undefined for a page that the site does not have. */
  readonly resolve?: (target: string) => string | undefined
}

/** Returns a heading's anchor, derived as GitHub does, so links work on both sites. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .trim()
    .replaceAll(/\s/g, "-")

/** On narrow screens, a table with more columns shows each cell on a separate line. */
const narrowColumns = 3

const choices: Readonly<Record<string, Language>> = { sh: "curl", python: "Python", js: "JavaScript" }
const otherLabels: Readonly<Record<string, string>> = { json: "JSON", yaml: "YAML", toml: "TOML" }

const isCode = (token: Token): token is Tokens.Code => token.type === "code"
const isHeading = (token: Token): token is Tokens.Heading => token.type === "heading"

const codeView = ({ lang = "", text }: Tokens.Code, isChoice: boolean): Html => {
  const choice = choices[lang]
  const label = choice === "curl" && !text.includes("curl ") ? "Shell" : (choice ?? otherLabels[lang] ?? "Text")
  return codeBlock({ label, text, choice: isChoice ? choice : undefined })
}

/** Returns a Markdown renderer that escapes HTML in the text. */
const rendererOf = ({ headingOffset = 0, resolve = (target) => target }: MarkdownOptions): Marked =>
  new Marked({
    renderer: {
      html: ({ text }) => html`${text}`.text,
      codespan: ({ text }) => html`<code>${text}</code>`.text,
      code: (token) => codeView(token, false).text,
      heading({ depth, text, tokens }) {
        const tag = new Html(`h${depth + headingOffset}`)
        const anchor = headingOffset === 0 ? html` id="${anchorOf(text)}"` : undefined
        return html`<${tag}${anchor}>${new Html(this.parser.parseInline(tokens))}</${tag}>`.text
      },
      link({ href, tokens }) {
        const target = resolve(href)
        const content = new Html(this.parser.parseInline(tokens))
        return (target === undefined ? content : html`<a href="${target}">${content}</a>`).text
      },
      table({ header, rows }) {
        const contentOf = ({ tokens }: Tokens.TableCell) => new Html(this.parser.parseInline(tokens))
        const heads = header.map((cell) =>
          cell.text === "" ? html`<td></td>` : html`<th scope="col">${contentOf(cell)}</th>`
        )
        const hasHeadings = header.some(({ text }) => text !== "")
        const cellOf = (cell: Tokens.TableCell, column: number) =>
          html`<td data-label="${header[column]?.text.replaceAll("`", "")}">${contentOf(cell)}</td>`
        return html`<table class="${header.length > narrowColumns ? "wide" : ""}">
${hasHeadings ? html`<thead><tr>${heads}</tr></thead>` : undefined}
<tbody>${rows.map((cells) => html`<tr>${cells.map(cellOf)}</tr>`)}</tbody></table>`.text
      }
    }
  })

const descriptionRenderer = rendererOf({ headingOffset: 1 })

/** Renders a description of the published document. */
export const markdown = (text = ""): Html => new Html(descriptionRenderer.parse(text, { async: false }))

/** Renders a description without paragraphs. */
export const inline = (text: string): Html => new Html(descriptionRenderer.parseInline(text, { async: false }))

/** Groups a page's tokens: adjacent code blocks form a run, and so do all other tokens between them. */
const runsOf = (tokens: ReadonlyArray<Token>): ReadonlyArray<ReadonlyArray<Token>> => {
  const runs: Array<Array<Token>> = []
  for (const token of tokens) {
    const last = runs.at(-1)
    const isContinued = token.type === "space" || (last !== undefined && isCode(token) === last.some(isCode))
    if (last !== undefined && isContinued) last.push(token)
    else runs.push([token])
  }
  return runs
}

/** Renders a whole page. Of adjacent examples in different languages, readers see only the one in their chosen language. */
export const renderPage = (text: string, resolve: (target: string) => string | undefined): PageContent => {
  const renderer = rendererOf({ resolve })
  const tokens = renderer.lexer(text)
  const content = runsOf(tokens).map((run) => {
    const blocks = run.filter(isCode)
    const languages = new Set(blocks.map(({ lang = "" }) => choices[lang]))
    return blocks.length > 1 && languages.size === blocks.length && !languages.has(undefined)
      ? codeChoice(blocks.map((block) => codeView(block, true)))
      : new Html(renderer.parser([...run]))
  })
  const headings = tokens.filter(isHeading).filter(({ depth }) => depth === 2)
  return {
    content: html`${content}`,
    sections: headings.map(({ text: heading }) => ({ anchor: anchorOf(heading), title: heading.replaceAll("`", "") }))
  }
}
