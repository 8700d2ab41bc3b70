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
