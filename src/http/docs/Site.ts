import { type Html, html } from "./Html.ts"

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
export type Site = ReturnType<typeof siteAt>

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
