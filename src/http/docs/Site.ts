import { Html, html, languages, makePage, type Page, textOf } from "./DocsPage.ts"
import { script } from "./SiteScript.ts"
import { site as style } from "./SiteStyle.ts"

/** All pages, in the order of the navigation. */
const groups = [
  {
    title: "Start",
    pages: [
      { name: "quickstart", title: "Quickstart" },
      { name: "models", title: "Models and prices" },
      { name: "agents", title: "Coding agents" }
    ]
  },
  {
    title: "Guides",
    pages: [
      { name: "streaming", title: "Streaming" },
      { name: "tools", title: "Tools" },
      { name: "structured-output", title: "Structured output" },
      { name: "images", title: "Images" },
      { name: "edit-images", title: "Edit images" },
      { name: "videos", title: "Videos" },
      { name: "webhooks", title: "Webhooks" },
      { name: "retries", title: "Retries and idempotency" }
    ]
  },
  {
    title: "Reference",
    pages: [
      { name: "reference", title: "API reference" },
      { name: "api", title: "Endpoints in detail" },
      { name: "errors", title: "Errors" },
      { name: "limits", title: "Limits" },
      { name: "money", title: "Money" }
    ]
  }
] as const

export const pages = groups.flatMap((group): ReadonlyArray<(typeof group.pages)[number]> => group.pages)
export type PageName = (typeof pages)[number]["name"]

/** Returns the pages' addresses without a host, so they also work through a tunnel with another host. */
export const siteAt = (publicUrl: string) => {
  const start = `${new URL(publicUrl).pathname.replace(/\/$/, "")}/docs`
  return {
    page: (name: PageName): string => (name === "quickstart" ? start : `${start}/${name}`),
    searchIndex: `${start}/search.json`
  }
}
export type Site = ReturnType<typeof siteAt>

interface Section {
  readonly anchor: string
  readonly title: string
  readonly parts?: ReadonlyArray<Section>
}

export interface PageContent {
  readonly content: Html
  /** The sections that the navigation lists below this page. */
  readonly sections: ReadonlyArray<Section>
}

const sectionLinks = (sections: ReadonlyArray<Section>): Html | undefined =>
  sections.length === 0
    ? undefined
    : html`<ul>${sections.map(
        ({ anchor, parts = [], title }): Html => html`<li><a href="#${anchor}">${title}</a>${sectionLinks(parts)}</li>`
      )}</ul>`

const menu = (site: Site, current: PageName, sections: ReadonlyArray<Section>): Html => {
  const entry = ({ name, title }: (typeof pages)[number]): Html =>
    name === current
      ? html`<li><a href="${site.page(name)}" aria-current="page">${title}</a>${sectionLinks(sections)}</li>`
      : html`<li><a href="${site.page(name)}">${title}</a></li>`
  return html`<nav class="menu" aria-label="Documentation"><details open><summary>Menu</summary>
${groups.map(
  (group) => html`<p id="menu-${group.title}">${group.title}</p>
<ul aria-labelledby="menu-${group.title}">${group.pages.map(entry)}</ul>`
)}</details></nav>`
}

/** The search field is hidden until the script runs, because it does not work without. */
const search = (site: Site): Html => html`<div class="search" role="search" data-index="${site.searchIndex}" hidden>
<label class="unseen" for="search">Search the documentation</label>
<input id="search" type="search" placeholder="Search" autocomplete="off" spellcheck="false" aria-keyshortcuts="/"><kbd aria-hidden="true">/</kbd>
<div class="results" hidden><p role="status"></p><ul></ul></div></div>`

const languageChoice = (): Html => {
  const choices = languages.map((language, at) => {
    const id = language.toLowerCase()
    const checkedAttribute = at === 0 ? new Html(" checked") : undefined
    return html`<label><input type="radio" name="language" id="${id}" value="${id}"${checkedAttribute}><span>${language}</span></label>`
  })
  return html`<fieldset class="languages"><legend class="unseen">Language of the examples</legend>${choices}</fieldset>`
}

interface SitePage extends PageContent {
  readonly name: PageName
  readonly site: Site
  readonly siteTitle: string
}

export const sitePage = ({ content, name, sections, site, siteTitle }: SitePage): Page => {
  const title = pages.find((page) => page.name === name)?.title ?? name
  const hasChoice = content.text.includes('class="choice"')
  const body = html`<a class="skip" href="#content">Skip to the content</a>
<header><a class="brand" href="${site.page("quickstart")}">${siteTitle}</a>${search(site)}</header>
<div class="page ${name}">
${menu(site, name, sections)}
<main id="content" tabindex="-1">
${hasChoice ? languageChoice() : undefined}
${content}
</main></div>`
  return makePage({ title: `${title} - ${siteTitle}`, style, script, body })
}

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
