import path from "node:path"
import { Option, Predicate } from "effect"
import agents from "../../../../docs/agents.md" with { type: "text" }
import api from "../../../../docs/api.md" with { type: "text" }
import errors from "../../../../docs/errors.md" with { type: "text" }
import editImages from "../../../../docs/guides/edit-images.md" with { type: "text" }
import images from "../../../../docs/guides/images.md" with { type: "text" }
import quickstart from "../../../../docs/guides/quickstart.md" with { type: "text" }
import retries from "../../../../docs/guides/retries.md" with { type: "text" }
import streaming from "../../../../docs/guides/streaming.md" with { type: "text" }
import structuredOutput from "../../../../docs/guides/structured-output.md" with { type: "text" }
import tools from "../../../../docs/guides/tools.md" with { type: "text" }
import videos from "../../../../docs/guides/videos.md" with { type: "text" }
import limits from "../../../../docs/limits.md" with { type: "text" }
import money from "../../../../docs/money.md" with { type: "text" }
import webhooks from "../../../../docs/webhooks.md" with { type: "text" }
import type { ListedModel } from "../../../domain/ListedModel.ts"
import { type ChatModel, isChat, isImage, isVideo, type Model, type Surface } from "../../../domain/Model.ts"
import { toUsd } from "../../../domain/Money.ts"
import { clipPrice } from "../../../domain/VideoRules.ts"
import type { about } from "../../Api.ts"
import { codeBlock, html, makeFile, makePage, type Page } from "../DocsPage.ts"
import { type Document, decodeDocument } from "../Document.ts"
import { anchorOf, renderPage } from "../Markdown.ts"
import { referenceContent, referenceEntries } from "../ReferencePages.ts"
import { entriesOf, type PageContent, type PageName, pages, type Site, siteAt, sitePage } from "../Site.ts"
import { home } from "../SiteStyle.ts"
import { modelsContent } from "./ModelsPage.ts"

/** The pages whose text is a file of the project's `docs/`. */
const texts: Readonly<Record<Exclude<PageName, "models" | "reference">, readonly [file: string, text: string]>> = {
  quickstart: ["guides/quickstart.md", quickstart],
  streaming: ["guides/streaming.md", streaming],
  tools: ["guides/tools.md", tools],
  "structured-output": ["guides/structured-output.md", structuredOutput],
  images: ["guides/images.md", images],
  "edit-images": ["guides/edit-images.md", editImages],
  videos: ["guides/videos.md", videos],
  retries: ["guides/retries.md", retries],
  agents: ["agents.md", agents],
  webhooks: ["webhooks.md", webhooks],
  api: ["api.md", api],
  errors: ["errors.md", errors],
  limits: ["limits.md", limits],
  money: ["money.md", money]
}

/** The models that the guides use in their examples. */
const exampleModels: Readonly<Record<string, Surface>> = {
  "gpt-5.5": "chat",
  "gpt-5.2": "chat",
  "claude-opus-5": "chat",
  "claude-sonnet-5": "chat",
  "claude-haiku-4-5": "chat",
  "gemini-3.6-flash": "chat",
  "gemini-3-pro-image": "image",
  "gpt-image-2": "image",
  "gpt-image-1.5": "image",
  "veo-3.1-fast-generate-001": "video",
  "hailuo-2.3": "video"
}

const exampleId = new RegExp(
  `(?<![\\w.-])(?:${Object.keys(exampleModels)
    .map((id) => id.replaceAll(".", "\\."))
    .join("|")})(?![\\w-]|\\.\\w)`,
  "g"
)

const vendorOf = (id: string): string | undefined => id.split("-")[0]

/** Returns whether a model supports the features that the guides show. */
const isVersatile = (model: Model): boolean => {
  if (isChat(model)) return model.capabilities.has("tools") && model.capabilities.has("response_format")
  return isImage(model) ? model.edit : isVideo(model) && model.referenceImage === "optional"
}

/** Returns the model to show in an example: this one if it is on sale, else a similar one. */
const replacementOf = (id: string, models: ReadonlyArray<Model>): string => {
  const similarModels = models.filter(({ surface }) => surface === exampleModels[id])
  const ofVendor = similarModels.filter((model) => vendorOf(model.id) === vendorOf(id))
  const replacement =
    similarModels.find((model) => model.id === id) ??
    ofVendor.find(isVersatile) ??
    ofVendor[0] ??
    similarModels.find(isVersatile) ??
    similarModels[0]
  return replacement?.id ?? "<model>"
}

const maxExampleOutput = 64_000

const limitOf = ({ contextLength, maxOutput, ownMaxOutput = maxOutput }: ChatModel) => ({
  context: contextLength,
  output: Math.min(maxExampleOutput, ownMaxOutput)
})

interface Source {
  /** Models with their current prices. */
  readonly models: ReadonlyArray<Model>
  readonly listModel: (model: Model) => ListedModel
  /** The published OpenAPI document. */
  readonly published: unknown
  readonly publicUrl: string
}

/** Replaces limits, lengths and prices of models in a JSON example by the current ones. */
const correctFacts = (value: unknown, source: Pick<Source, "models" | "listModel">): unknown => {
  const { listModel, models } = source
  if (Array.isArray(value)) return value.map((item) => correctFacts(item, source))
  if (!Predicate.isRecord(value)) return value
  const exampleModel = models.find(({ id }) => id === value.id)
  if (value.object === "model" && exampleModel !== undefined) return listModel(exampleModel)
  const entries = Object.entries(value).map(([key, item]) => {
    const model = models.find(({ id }) => id === key)
    return model !== undefined && isChat(model) && Predicate.isRecord(item)
      ? [key, { ...item, limit: limitOf(model) }]
      : [key, correctFacts(item, source)]
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

/** Replaces the host and the models in the examples of a text by those of this gateway. */
const adaptExamples = (text: string, source: Omit<Source, "published">): string =>
  text
    .replaceAll(exampleHosts, () => source.publicUrl)
    .replaceAll(exampleId, (id) => replacementOf(id, source.models))
    .replaceAll(jsonBlock, (block, json: string) => {
      const value = Option.getOrUndefined(parse(json))
      const correctedValue = correctFacts(value, source)
      return value === undefined || JSON.stringify(value) === JSON.stringify(correctedValue)
        ? block
        : `\`\`\`json\n${JSON.stringify(correctedValue, null, 2)}\n\`\`\``
    })

/** Returns a function that maps a link in a documentation file to the address of the page on this site. */
const linksOf = (site: Site, { paths }: Document) => {
  const operations = new Map(
    Object.entries(paths).flatMap(([endpoint, item]) =>
      Object.entries(item).map(([method, { operationId }]) => [anchorOf(`${method} ${endpoint}`), operationId] as const)
    )
  )
  const files = new Map(Object.entries(texts).map(([name, [file]]) => [file, name]))
  return (from: string, target: string): string | undefined => {
    if (/^(?:#|https?:)/.test(target)) return target
    const [relative = "", anchor = ""] = target.split("#")
    const file = path.posix.join(path.posix.dirname(from), relative)
    const operation = file === texts.api[0] ? operations.get(anchor) : undefined
    if (operation !== undefined) return `${site.page("reference")}#${operation}`
    const page = pages.find(({ name }) => name === files.get(file))
    return page && `${site.page(page.name)}${anchor === "" ? "" : `#${anchor}`}`
  }
}

/** Renders all pages of the site. The keys are the last parts of their addresses, which is empty for the quickstart. */
export const docsPages = (source: Source): ReadonlyMap<string, Page> => {
  const { listModel, models, publicUrl, published } = source
  const site = siteAt(publicUrl)
  const document = decodeDocument(published)
  const resolve = linksOf(site, document)
  const explainedAnchors = new Set(
    Array.from(texts.api[1].matchAll(/^## (.+)$/gm), ([, title = ""]) => anchorOf(title))
  )

  const contentOf = (name: PageName): PageContent => {
    if (name === "models") return modelsContent(models.map(listModel))
    if (name === "reference") {
      return referenceContent(document, (endpoint) => {
        const anchor = anchorOf(`${endpoint.method} ${endpoint.path}`)
        return explainedAnchors.has(anchor) ? `${site.page("api")}#${anchor}` : undefined
      })
    }
    const [file, text] = texts[name]
    return renderPage(adaptExamples(text, source), (target) => resolve(file, target))
  }

  const renderedPages = pages.map(({ name, title }) => ({ name, title, ...contentOf(name) }))
  // The models page comes last in the index, because half of the models match the name of a feature.
  const searchedPages = renderedPages.toSorted(
    (one, other) => Number(one.name === "models") - Number(other.name === "models")
  )
  const entries = searchedPages.flatMap(({ content, name, title }) =>
    name === "reference"
      ? referenceEntries(document, title, site.page(name))
      : entriesOf(title, site.page(name), content)
  )
  return new Map([
    ...renderedPages.map(
      (page) =>
        [
          page.name === "quickstart" ? "" : page.name,
          sitePage({ ...page, site, siteTitle: document.info.title })
        ] as const
    ),
    ["search.json", makeFile(JSON.stringify(entries), "application/json; charset=utf-8")] as const
  ])
}

interface Home extends Readonly<typeof about> {
  /** The base URL with the version, such as `https://host/v1`. */
  readonly baseUrl: string
}

export const homePage = ({ baseUrl, description, title, version }: Home): Page =>
  makePage({
    title,
    style: home,
    body: html`<main>
<h1>${title} <small>${version}</small></h1>
<p>${description}</p>
<p>List the models and their prices:</p>
${codeBlock({ label: "curl", text: `curl ${baseUrl}/models \\\n  -H "Authorization: Bearer $GATEWAY_KEY"` })}
<p><a href="docs">Quickstart</a> &middot; <a href="docs/models">Models and prices</a> &middot;
<a href="docs/agents">Coding agents</a> &middot; <a href="docs/reference">API reference</a> &middot; <a href="v1/openapi.json">OpenAPI document</a></p>
</main>`
  })
