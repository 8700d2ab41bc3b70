import { Option, Predicate } from "effect"
import agents from "../../../../docs/agents.md" with { type: "text" }
import errors from "../../../../docs/errors.md" with { type: "text" }
import limits from "../../../../docs/limits.md" with { type: "text" }
import money from "../../../../docs/money.md" with { type: "text" }
import webhooks from "../../../../docs/webhooks.md" with { type: "text" }
import type { ListedModel } from "../../../domain/ListedModel.ts"
import { type ChatModel, isChat, isVideo, type Model, type Surface } from "../../../domain/Model.ts"
import { toUsd } from "../../../domain/Money.ts"
import { clipPrice } from "../../../domain/VideoRules.ts"
import { decodeDocument } from "../Document.ts"
import { type GuideName, guides, html, script, siteAt, siteBar } from "../Html.ts"
import { anchorOf, type Rendered, renderPage } from "../Markdown.ts"
import { makePage, type Page } from "../Page.ts"
import { guide } from "../Style.ts"
import { modelsContent } from "./ModelsPage.ts"

/** The models of the texts' examples. */
const shown: Readonly<Record<string, Surface>> = {
  "gpt-5.5": "chat",
  "claude-opus-5": "chat",
  "claude-sonnet-5": "chat",
  "claude-haiku-4-5": "chat",
  "gemini-3.6-flash": "chat",
  "gemini-3-pro-image": "image",
  "veo-3.1-fast-generate-001": "video"
}

const shownId = new RegExp(
  `(?<![\\w.-])(?:${Object.keys(shown)
    .map((id) => id.replaceAll(".", "\\."))
    .join("|")})(?![\\w-]|\\.\\w)`,
  "g"
)

const vendorOf = (id: string): string | undefined => id.split("-")[0]

/** The model itself, else one of its vendor's, else any of its surface. */
const replacementOf = (id: string, models: ReadonlyArray<Model>): string => {
  const alike = models.filter(({ surface }) => surface === shown[id])
  const found =
    alike.find((model) => model.id === id) ?? alike.find((model) => vendorOf(model.id) === vendorOf(id)) ?? alike[0]
  return found?.id ?? "<model>"
}

const longestAnswer = 64_000

const limitOf = ({ contextLength, maxOutput, ownMaxOutput = maxOutput }: ChatModel) => ({
  context: contextLength,
  output: Math.min(longestAnswer, ownMaxOutput)
})

/** Corrects what an example in JSON says of a model. */
const correct = (value: unknown, models: ReadonlyArray<Model>): unknown => {
  if (Array.isArray(value)) return value.map((item) => correct(item, models))
  if (!Predicate.isRecord(value)) return value
  const entries = Object.entries(value).map(([key, item]) => {
    const model = models.find(({ id }) => id === key)
    return model !== undefined && isChat(model) && Predicate.isRecord(item)
      ? [key, { ...item, limit: limitOf(model) }]
      : [key, correct(item, models)]
  })
  const video = models.filter(isVideo).find(({ id }) => id === value.model)
  const seconds = video?.seconds.default
  return {
    ...Object.fromEntries(entries),
    ...(video !== undefined &&
      seconds !== undefined && { seconds, charge_usd: toUsd(clipPrice(video.pricing, seconds)) })
  }
}

const parse = Option.liftThrowable((text: string): unknown => JSON.parse(text))

const exampleHosts = /https:\/\/gateway\.example|http:\/\/127\.0\.0\.1:8787/g
const jsonBlock = /^```json\n(.*?)^```$/gms

/** Makes the examples of a text those of this gateway: its address, its models, and what they are. */
export const adaptExamples = (text: string, models: ReadonlyArray<Model>, publicUrl: string): string =>
  text
    .replaceAll(exampleHosts, () => publicUrl)
    .replaceAll(shownId, (id) => replacementOf(id, models))
    .replaceAll(jsonBlock, (block, json: string) => {
      const value = Option.getOrUndefined(parse(json))
      const corrected = correct(value, models)
      return value === undefined || JSON.stringify(value) === JSON.stringify(corrected)
        ? block
        : `\`\`\`json\n${JSON.stringify(corrected, null, 2)}\n\`\`\``
    })

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
