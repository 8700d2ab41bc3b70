import agents from "../../../../docs/agents.md" with { type: "text" }
import errors from "../../../../docs/errors.md" with { type: "text" }
import limits from "../../../../docs/limits.md" with { type: "text" }
import money from "../../../../docs/money.md" with { type: "text" }
import webhooks from "../../../../docs/webhooks.md" with { type: "text" }
import type { ListedModel } from "../../../domain/ListedModel.ts"
import type { Model } from "../../../domain/Model.ts"
import { decodeDocument } from "../Document.ts"
import { html } from "../Html.ts"
import { anchorOf, type Rendered, renderPage } from "../Markdown.ts"
import { makePage, type Page } from "../Page.ts"
import { script } from "../Script.ts"
import { type GuideName, guides, siteAt, siteBar } from "../Site.ts"
import { guide } from "../Style.ts"
import { adaptExamples } from "./CatalogExamples.ts"
import { modelsContent } from "./ModelsPage.ts"

/** Those that are made of the project's own pages. */
const texts: Readonly<Record<Exclude<GuideName, "models">, string>> = { agents, errors, limits, money, webhooks }

interface Source {
  /** With the prices of now. */
  readonly models: ReadonlyArray<Model>
  readonly listed: (model: Model) => ListedModel
  /** The published OpenAPI document. */
  readonly published: unknown
  readonly publicUrl: string
}

/** Renders all guides. */
export const guidePages = ({ listed, models, publicUrl, published }: Source): ReadonlyMap<string, Page> => {
  const site = siteAt(publicUrl)
  const { info, paths } = decodeDocument(published)
  const operations = new Map(
    Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => [anchorOf(`${method} ${path}`), operationId] as const)
    )
  )

  /** Leads from one file of the project's pages to what the site has of another. */
  const resolve = (target: string): string | undefined => {
    if (/^(?:#|https?:)/.test(target)) return target
    const [file = "", anchor] = target.split("#")
    const known = guides.find(({ name }) => `${name}.md` === file)
    if (known !== undefined) return `${site.guide(known.name)}${anchor === undefined ? "" : `#${anchor}`}`
    const operation = file === "api.md" ? operations.get(anchor ?? "") : undefined
    return operation === undefined ? undefined : `${site.reference}#${operation}`
  }

  const contentOf = (name: GuideName): Rendered =>
    name === "models"
      ? modelsContent(models.map(listed))
      : renderPage(adaptExamples(texts[name], models, publicUrl), resolve)

  const pageOf = (name: GuideName, title: string): Page => {
    const { content, headings } = contentOf(name)
    const body = html`${siteBar(info.title, site, name)}
<div class="page">
<nav class="contents" aria-label="On this page"><details open><summary>On this page</summary>
<ul>${headings.map((heading) => html`<li><a href="#${heading.anchor}">${heading.title}</a></li>`)}</ul></details></nav>
<main id="content" tabindex="-1">
${content}
</main></div>`
    return makePage({ title: `${title} - ${info.title}`, style: guide, script, body })
  }
  return new Map(guides.map(({ name, title }) => [name, pageOf(name, title)]))
}
