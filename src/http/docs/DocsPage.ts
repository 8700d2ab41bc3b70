import { createHash } from "node:crypto"

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

/** Builds HTML. Parts that are not `Html` are escaped. */
export const html = ({ raw }: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(raw.map((text, at) => text + render(parts[at])).join(""))

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', amp: "&" }

/** Returns the text of rendered HTML on one line. */
export const textOf = ({ text }: Html): string =>
  text
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/&(?:#(\d+)|(\w+));/g, (entity, code?: string, name = "") =>
      code === undefined ? (entities[name] ?? entity) : String.fromCharCode(Number(code))
    )
    .replaceAll(/\s+/g, " ")
    .trim()

interface CodeBlock {
  readonly text: string
  /** The title of the block, such as the language of its code. */
  readonly label: string
  /** If present, the block is visible only while the reader has chosen this language. */
  readonly choice?: Language | undefined
}

export const languages = ["curl", "Python", "JavaScript"] as const
export type Language = (typeof languages)[number]

/** Renders code with a bar for its copy button. It can be focused and scrolled with the keyboard. */
export const codeBlock = ({ choice, label, text }: CodeBlock): Html => {
  const classes = choice === undefined ? "" : `sample ${choice.toLowerCase()}`
  return html`<div class="block ${classes}"><div class="bar">${label}</div>
<pre class="${classes}" tabindex="0" role="group" aria-label="Example in ${label}"><code>${text}</code></pre></div>`
}

/** Shows only the block in the language that the reader has chosen, or all blocks if none has that language. */
export const codeChoice = (blocks: ReadonlyArray<Html>): Html => html`<div class="choice">${blocks}</div>`

export interface Page {
  /** Bytes, which all responses share. A string would be copied for each response and kept until its client has read it. */
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64")

/** Returns the content security policy: only the page's own style and script, and the search index from the gateway. */
const policy = (style: string, script: string): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${hashOf(style)}'`,
    `script-src ${script === "" ? "'none'" : `'sha256-${hashOf(script)}'`}`,
    ...(script === "" ? [] : ["connect-src 'self'"]),
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

/** Makes a file of the site that is not a page, such as the search index. */
export const makeFile = (text: string, type: string): Page => {
  const body = Buffer.from(text)
  return {
    body,
    headers: {
      "content-type": type,
      "content-length": String(body.length),
      "x-content-type-options": "nosniff",
      "cache-control": "no-cache",
      etag: `"${hashOf(text)}"`
    }
  }
}

export const makePage = ({
  body: content,
  script = "",
  style,
  title
}: {
  readonly title: string
  readonly style: string
  readonly script?: string
  readonly body: Html
}): Page => {
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Html(style)}</style>
</head>
<body>
${content}
${script === "" ? undefined : html`<script>${new Html(script)}</script>`}
</body>
</html>
`
  const { body, headers } = makeFile(text, "text/html; charset=utf-8")
  return {
    body,
    headers: { ...headers, "content-security-policy": policy(style, script), "referrer-policy": "no-referrer" }
  }
}
