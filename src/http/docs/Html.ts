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

/** The page works without it. */
export const script = `
const menu = document.querySelector("nav details")
if (matchMedia("(max-width: 59.99rem)").matches) menu.open = false
const kept = () => { try { return localStorage.getItem("language") } catch { return null } }
for (const radio of document.querySelectorAll("input[name=language]")) {
  if (radio.value === kept()) radio.checked = true
  radio.addEventListener("change", () => { try { localStorage.setItem("language", radio.value) } catch {} })
}
if (navigator.clipboard) {
  for (const sample of document.querySelectorAll("pre")) {
    const block = document.createElement("div")
    block.className = "block"
    if (sample.classList.contains("sample")) block.classList.add(...sample.classList)
    sample.replaceWith(block)
    const button = document.createElement("button")
    button.className = "copy"
    button.textContent = "Copy"
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(sample.textContent)
      button.textContent = "Copied"
      setTimeout(() => { button.textContent = "Copy" }, 1500)
    })
    block.append(sample, button)
  }
}
`

/** The pages beside the reference. */
export const guides = [
  { name: "models", title: "Models and prices" },
  { name: "agents", title: "Coding agents" },
  { name: "errors", title: "Errors" },
  { name: "limits", title: "Limits" },
  { name: "money", title: "Money" },
  { name: "webhooks", title: "Webhooks" }
] as const
export type GuideName = (typeof guides)[number]["name"]

/** Addresses of the pages, without the host: a tunnel may have another one. */
export const siteAt = (publicUrl: string) => {
  const reference = `${new URL(publicUrl).pathname.replace(/\/$/, "")}/docs`
  return { reference, guide: (name: GuideName): string => `${reference}/${name}` }
}
type Site = ReturnType<typeof siteAt>

/** The head of every page, with links to all; the reference is the current one if none is named. */
export const siteBar = (title: string, site: Site, current?: GuideName): Html => {
  const entry = (target: string, title: string, isCurrent: boolean) =>
    html`<li><a href="${target}"${isCurrent ? html` aria-current="page"` : undefined}>${title}</a></li>`
  return html`<a class="skip" href="#content">Skip to the content</a>
<header><strong>${title}</strong><nav aria-label="Pages"><ul>
${entry(site.reference, "API reference", current === undefined)}
${guides.map(({ name, title }) => entry(site.guide(name), title, name === current))}
</ul></nav></header>`
}
