export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | number | undefined | ReadonlyArray<Part>

const escape = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const render = (part: Part): string => {
  if (part === undefined) return ""
  if (part instanceof Html) return part.text
  return typeof part === "object" ? part.map(render).join("") : escape(String(part))
}

/** Escapes every part that is not HTML already. */
export const html = ({ raw }: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(raw.map((text, at) => text + render(parts[at])).join(""))

/** A scrolling block that the keyboard reaches, too. */
export const codeBlock = (label: string, text: string, classes = "") =>
  html`<pre class="${classes}" tabindex="0" role="group" aria-label="${label}"><code>${text}</code></pre>`

/** The class of a block that is only shown with the examples of its language. */
const samples: Readonly<Record<string, string>> = {
  sh: "sample curl",
  python: "sample python",
  js: "sample javascript"
}

/** Renders code spans only, no other Markdown. */
export const inline = (text: string): ReadonlyArray<Part> =>
  text.split("`").map((piece, at) => (at % 2 === 1 ? html`<code>${piece}</code>` : piece))

const block = (text: string): Html => {
  const [, language = "", code] = /^```(.*)\n([\s\S]*?)\n```$/.exec(text) ?? []
  if (code !== undefined) return codeBlock("Example", code, samples[language])
  if (text.startsWith("## ")) return html`<h3>${text.slice(3).trimEnd()}</h3>`
  const lines = text.trimEnd().split("\n")
  return lines.every((line) => line.startsWith("- "))
    ? html`<ul>${lines.map((line) => html`<li>${inline(line.slice(2))}</li>`)}</ul>`
    : html`<p>${inline(text)}</p>`
}

/** The little of Markdown that our descriptions use: paragraphs, headings, lists, code. */
export const markdown = (text = ""): Html => html`${(text.match(/^```[\s\S]*?^```|(?:^.+\n?)+/gm) ?? []).map(block)}`
