import type { ListedModel } from "../../../domain/ListedModel.ts"
import type { Surface } from "../../../domain/Model.ts"
import { type Html, html } from "../Html.ts"
import { anchorOf } from "../Markdown.ts"

type Prices = ListedModel["pricing"]
type Row = readonly [name: string, ...usd: ReadonlyArray<number | undefined>]

const count = (value: number): string => value.toLocaleString("en-US")
const usd = (value: number | undefined): string =>
  value === undefined ? "" : `$${value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 9 })}`

const tokenRows = [
  ["Prompt, a million tokens", "prompt_per_1m_usd"],
  ["Prompt read from a cache", "cached_prompt_per_1m_usd"],
  ["Prompt written to a cache", "cache_write_per_1m_usd"],
  ["Written to a cache for an hour", "cache_write_1h_per_1m_usd"],
  ["Answer, reasoning included", "completion_per_1m_usd"]
] as const

const join = (parts: ReadonlyArray<string>): string => parts.filter((part) => part !== "").join(", ")

/** Column heads after the first, and rows. */
const priceRows = (prices: Prices): { readonly heads: ReadonlyArray<string>; readonly rows: ReadonlyArray<Row> } => {
  if ("prompt_per_1m_usd" in prices) {
    const { long_context: long, max_web_searches: most, web_search_per_1k_usd: search } = prices
    const heads = long === undefined ? ["USD"] : ["USD", `USD, above ${count(long.above)} prompt tokens`]
    const rows = tokenRows.map(([name, key]): Row => [name, prices[key], ...(long === undefined ? [] : [long[key]])])
    if (search === undefined) return { heads, rows }
    const name = `A thousand web searches${most === undefined ? "" : `, at most ${most} a request`}`
    return { heads, rows: [...rows, [name, search, ...(long === undefined ? [] : [search])]] }
  }
  if ("per_image_usd" in prices) {
    const rows = prices.variants.map(
      ({ aspect_ratios = [], per_image_usd, resolution, sizes = [] }): Row => [
        `An image in ${join([resolution, ...sizes, ...aspect_ratios])}`,
        per_image_usd
      ]
    )
    return { heads: ["USD"], rows }
  }
  const { per_second_usd, per_video_usd } = prices
  const row: Row = per_second_usd === undefined ? ["A video", per_video_usd] : ["A second", per_second_usd]
  return { heads: ["USD"], rows: [row] }
}

const priceTable = (caption: string, prices: Prices): Html => {
  const { heads, rows } = priceRows(prices)
  return html`<table class="prices"><caption>${caption}</caption>
<thead><tr><th scope="col">Of</th>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td>${usd(cell)}</td>`)}</tr>`
  )}</tbody></table>`
}

const officialPrices = (prices: Prices): ReadonlyArray<string> => {
  if ("prompt_per_1m_usd" in prices) {
    const { official_completion_per_1m_usd: answer, official_prompt_per_1m_usd: prompt } = prices
    return prompt === undefined ? [] : [`${usd(prompt)} and ${usd(answer)} for a million tokens of prompt and answer`]
  }
  if ("per_image_usd" in prices) {
    const { official_per_image_usd: image } = prices
    return image === undefined ? [] : [`${usd(image)} for an image`]
  }
  const { official_per_second_usd: second, official_per_video_usd: video } = prices
  return [
    ...(second === undefined ? [] : [`${usd(second)} for a second`]),
    ...(video === undefined ? [] : [`${usd(video)} for a video`])
  ]
}

/** Names and values, in the order in which they are shown. */
const factsOf = ({ capabilities, context_length, image, params, pricing, top_provider, video }: ListedModel) => {
  const options = (key: string): string => join(params.find((param) => param.key === key)?.options ?? [])
  const output = top_provider?.max_completion_tokens
  const facts: ReadonlyArray<readonly [string, string]> = [
    ["Can do", join(capabilities.map((capability) => capability.replaceAll("_", " ")))],
    ["Context", context_length === undefined ? "" : `${count(context_length)} tokens`],
    ["Longest answer", output === undefined ? "" : `${count(output)} tokens`],
    ["reasoning_effort", options("reasoning_effort")],
    ["resolution", join(image?.resolutions ?? [])],
    ["size", join(image?.sizes ?? [])],
    ["aspect_ratio", join(image?.aspect_ratios ?? [])],
    ["Reference images", image === undefined || image.max_references === 0 ? "" : `at most ${image.max_references}`],
    ["seconds", video === undefined ? "" : `${video.seconds.allowed.join(", ")}; ${video.seconds.default} if left out`],
    ["Reference frame", video === undefined ? "" : video.reference_image],
    ["List price of the vendor", officialPrices(pricing).join("")],
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

/** Shows what is sold now, in the order of the catalog. */
export const modelsContent = (models: ReadonlyArray<ListedModel>) => {
  const sold = surfaces
    .map(([surface, title]) => ({ title, models: models.filter((model) => model.surface === surface) }))
    .filter((group) => group.models.length > 0)
  return {
    headings: sold.flatMap((group) =>
      [group.title, ...group.models.map(({ id }) => id)].map((title) => ({ anchor: anchorOf(title), title }))
    ),
    content: html`<h1>Models and prices</h1>
<p>What this gateway sells now, as <code>GET /v1/models</code> lists it; a key may be limited to some of it. Prices are in USD, and
what you are charged.</p>
${sold.map((group) => html`<h2 id="${anchorOf(group.title)}">${group.title}</h2>${group.models.map(modelView)}`)}`
  }
}
