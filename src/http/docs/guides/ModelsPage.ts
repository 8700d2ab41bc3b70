import type { ListedModel } from "../../../domain/ListedModel.ts"
import type { Surface } from "../../../domain/Model.ts"
import { orderedKinds, tokenKinds } from "../../../domain/TokenKinds.ts"
import { type Html, html } from "../DocsPage.ts"
import { anchorOf } from "../Markdown.ts"
import type { PageContent } from "../Site.ts"

type Prices = ListedModel["pricing"]
type Row = readonly [name: string, ...usd: ReadonlyArray<number | undefined>]

const count = (value: number): string => value.toLocaleString("en-US")
const usd = (value: number | undefined): string =>
  value === undefined ? "" : `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 9 })}`

const tokenRows = orderedKinds.map((kind) => tokenKinds[kind])

const join = (parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(", ")

/** Returns a table of prices: the heads of all columns except the first, and the rows. */
const priceRows = (prices: Prices): { readonly heads: ReadonlyArray<string>; readonly rows: ReadonlyArray<Row> } => {
  if ("prompt_per_1m_usd" in prices) {
    const { long_context: longContext, max_web_searches: maxSearches, web_search_per_1k_usd: search } = prices
    const heads = longContext === undefined ? ["USD"] : ["USD", `USD, above ${count(longContext.above)} prompt tokens`]
    const rows = tokenRows.map(({ heading, price }): Row => {
      return [heading, prices[price], ...(longContext === undefined ? [] : [longContext[price]])]
    })
    if (search === undefined) return { heads, rows }
    const name = `1,000 web searches${maxSearches === undefined ? "" : `, at most ${maxSearches} per request`}`
    return { heads, rows: [...rows, [name, search, ...(longContext === undefined ? [] : [search])]] }
  }
  if ("per_image_usd" in prices) {
    const rows = prices.variants.map(
      ({ aspect_ratios = [], per_image_usd, resolution, sizes = [] }): Row => [
        `Image in ${join([resolution, ...sizes, ...aspect_ratios])}`,
        per_image_usd
      ]
    )
    return { heads: ["USD"], rows }
  }
  const { per_second_usd, per_video_usd } = prices
  const row: Row = per_second_usd === undefined ? ["Video", per_video_usd] : ["Second", per_second_usd]
  return { heads: ["USD"], rows: [row] }
}

const priceTable = (caption: string, prices: Prices): Html => {
  const { heads, rows } = priceRows(prices)
  return html`<table class="prices"><caption>${caption}</caption>
<thead><tr><th scope="col">Item</th>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td>${usd(cell)}</td>`)}</tr>`
  )}</tbody></table>`
}

const officialPrices = (prices: Prices): ReadonlyArray<string> => {
  if ("prompt_per_1m_usd" in prices) {
    const { official_completion_per_1m_usd: output, official_prompt_per_1m_usd: prompt } = prices
    return prompt === undefined ? [] : [`${usd(prompt)} and ${usd(output)} per million prompt and output tokens`]
  }
  if ("per_image_usd" in prices) {
    const { official_per_image_usd: image } = prices
    return image === undefined ? [] : [`${usd(image)} per image`]
  }
  const { official_per_second_usd: second, official_per_video_usd: video } = prices
  return [
    ...(second === undefined ? [] : [`${usd(second)} per second`]),
    ...(video === undefined ? [] : [`${usd(video)} per video`])
  ]
}

/** Returns the names and values of a model's facts, in the order in which the page shows them. */
const factsOf = ({ capabilities, context_length, image, params, pricing, top_provider, video }: ListedModel) => {
  const options = (key: string): string => join(params.find((param) => param.key === key)?.options ?? [])
  const output = top_provider?.max_completion_tokens
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["Capabilities", join(capabilities)],
    ["Context", context_length === undefined ? "" : `${count(context_length)} tokens`],
    ["Maximum output", output === undefined ? "" : `${count(output)} tokens`],
    ["reasoning_effort", options("reasoning_effort")],
    ["resolution", join(image?.resolutions ?? [])],
    ["size", join(image?.sizes ?? [])],
    ["aspect_ratio", join(image?.aspect_ratios ?? [])],
    ["Reference images", image === undefined || image.max_references === 0 ? "" : `at most ${image.max_references}`],
    ["seconds", video === undefined ? "" : `${video.seconds.allowed.join(", ")}; default ${video.seconds.default}`],
    ["Reference frame", video === undefined ? "" : video.reference_image],
    ["Vendor's list price", officialPrices(pricing).join("")],
    ["You save", pricing.discount_pct === undefined ? "" : `${pricing.discount_pct} percent`]
  ]
  return facts.filter(([, value]) => value !== "")
}

const nextPrices = ({ at, ...prices }: NonNullable<ListedModel["next_pricing"]>): Html =>
  priceTable(`From ${new Date(at * 1000).toISOString().replace(".000Z", "Z")}`, prices)

const modelView = (model: ListedModel): Html => html`<section class="model" aria-labelledby="${anchorOf(model.id)}">
<h3 id="${anchorOf(model.id)}"><code>${model.id}</code></h3>
<dl>${factsOf(model).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
${priceTable("Prices", model.pricing)}
${model.next_pricing === undefined ? undefined : nextPrices(model.next_pricing)}
</section>`

const surfaces: ReadonlyArray<readonly [Surface, string]> = [
  ["chat", "Chat models"],
  ["image", "Image models"],
  ["video", "Video models"]
]

type Capability = ListedModel["capabilities"][number]

/** The columns of the comparison. A capability may have different names for chat, images and videos. */
const columns: ReadonlyArray<readonly [title: string, capabilities: ReadonlyArray<Capability>]> = [
  ["Tools", ["tools"]],
  ["Images in", ["vision", "edit", "reference_image"]],
  ["Structured output", ["response_format"]],
  ["Reasoning", ["reasoning"]],
  ["Web search", ["web_search"]]
]

interface Comparison {
  readonly context?: number | undefined
  readonly input?: number | undefined
  readonly output?: number | undefined
  /** The unit of the output price. The default is a million tokens. */
  readonly unit?: "image" | "second" | "video"
}

const compare = ({ context_length: context, pricing }: ListedModel): Comparison => {
  if ("prompt_per_1m_usd" in pricing) {
    return { context, input: pricing.prompt_per_1m_usd, output: pricing.completion_per_1m_usd }
  }
  if ("per_image_usd" in pricing) return { output: pricing.per_image_usd, unit: "image" }
  return pricing.per_second_usd === undefined
    ? { output: pricing.per_video_usd, unit: "video" }
    : { output: pricing.per_second_usd, unit: "second" }
}

const comparisonRow = (model: ListedModel): Html => {
  const { context, input, output, unit } = compare(model)
  const supported = columns.filter(([, names]) => names.some((name) => model.capabilities.includes(name)))
  const words = [model.id, model.surface, ...supported.map(([title]) => title), ...model.capabilities]
    .join(" ")
    .toLowerCase()
  const number = (value: number | undefined, text: string) =>
    html`<td class="number" data-value="${value}">${value === undefined ? "" : text}</td>`
  return html`<tr data-words="${words}"><th scope="row" data-value="${model.id}"><a href="#${anchorOf(model.id)}">${model.id}</a></th>
<td data-value="${model.surface}">${model.surface}</td>
${number(context, count(context ?? 0))}${number(input, usd(input))}${number(output, `${usd(output)}${unit === undefined ? "" : ` / ${unit}`}`)}
${columns.map(([title]) =>
  supported.some(([one]) => one === title)
    ? html`<td class="can" data-value="1"><span aria-hidden="true">&check;</span><span class="unseen">yes</span></td>`
    : html`<td class="can" data-value=""></td>`
)}</tr>`
}

const comparison = (groups: ReadonlyArray<{ readonly title: string; readonly models: ReadonlyArray<ListedModel> }>) => {
  const heads = [
    ...["Model", "Kind"].map((title) => ({ title, kind: "" })),
    ...["Context", "Input", "Output"].map((title) => ({ title, kind: "number" })),
    ...columns.map(([title]) => ({ title, kind: "can" }))
  ]
  return html`<div class="filter" hidden><label for="filter">Filter</label>
<input id="filter" type="search" placeholder="such as claude, video or web search" autocomplete="off" spellcheck="false"><p role="status"></p></div>
<div class="compare" role="region" aria-label="All models" tabindex="0"><table class="unsearched">
<thead><tr>${heads.map(({ kind, title }) => html`<th class="${kind}" scope="col">${title}</th>`)}</tr></thead>
${groups.map(
  ({ models, title }) => html`<tbody><tr class="kind"><th scope="rowgroup" colspan="${heads.length}">${title}</th></tr>
${models.map(comparisonRow)}</tbody>`
)}</table></div>`
}

/** Renders a comparison of the models on sale, and each model's facts and prices, in the order of the catalog. */
export const modelsContent = (models: ReadonlyArray<ListedModel>): PageContent => {
  const groups = surfaces
    .map(([surface, title]) => ({ title, models: models.filter((model) => model.surface === surface) }))
    .filter((group) => group.models.length > 0)
  return {
    sections: ["Compare all models", ...groups.map(({ title }) => title)].map((title) => ({
      anchor: anchorOf(title),
      title
    })),
    content: html`<h1>Models and prices</h1>
<p>The gateway sells these models now. <code>GET /v1/models</code> returns the same list. Your key may be limited to some of
them. Prices are in USD, and they are what you pay.</p>
<h2 id="compare-all-models">Compare all models</h2>
<p>Context is in tokens. Prices are in USD for a million tokens, or for one image, second or video. Select a heading to sort.</p>
${comparison(groups)}
${groups.map((group) => html`<h2 id="${anchorOf(group.title)}">${group.title}</h2>${group.models.map(modelView)}`)}`
  }
}
