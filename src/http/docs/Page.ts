import { createHash } from "node:crypto"
import { Html, html } from "./Html.ts"

export interface Page {
  /** Bytes that all answers share: each unread answer would keep its own copy of a string. */
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("base64")

/** Nothing is loaded from anywhere; the page's own style and script are allowed by their hashes. */
const policy = (style: string, script: string): string =>
  [
    "default-src 'none'",
    `style-src 'sha256-${hashOf(style)}'`,
    `script-src ${script === "" ? "'none'" : `'sha256-${hashOf(script)}'`}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

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
  const body = Buffer.from(text)
  return {
    body,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-length": String(body.length),
      "content-security-policy": policy(style, script),
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-cache",
      etag: `"${hashOf(text)}"`
    }
  }
}
