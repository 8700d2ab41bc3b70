import { addressOf } from "../../api/Client.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { useVisible } from "../../Session.ts"
import { UsageChart } from "./UsageChart.tsx"
import { dimensions, internalDimensions, isOfTime, readDimensions } from "./UsageRow.ts"
import { titles, UsageTable } from "./UsageTable.tsx"

const fallback = "30d"

const choices = dimensions.map((dimension) => ({
  option: [dimension, titles[dimension]] as const,
  isInternal: internalDimensions.includes(dimension)
}))

const others: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true },
  { kind: "text", name: "key", label: "Key", placeholder: "key_…" },
  { kind: "text", name: "model", label: "Model" },
  { kind: "text", name: "route", label: "Route", placeholder: "model@provider", isInternal: true },
  { kind: "select", name: "surface", label: "Surface", options: ["chat", "image", "video"] },
  { kind: "select", name: "status", label: "Status", options: ["200", "202", "4xx", "5xx", "402", "429", "499", "503"] }
]

const twoDays = 2 * 86_400

export const Usage = () => {
  const { query } = useRoute()
  const options = useVisible(choices).map(({ option }) => option)
  const filters: ReadonlyArray<Filter> = [
    { kind: "range", fallback },
    { kind: "select", name: "by", label: "By", options: options.filter(([name]) => name !== "model"), none: "Model" },
    { kind: "select", name: "and", label: "Then by", options, none: "–" },
    ...others
  ]
  const { since, until } = useRange(fallback)
  const { key, model, organization, route, status, surface } = query
  const asked = { organization, key, model, route, surface, status, since, until }
  const by = readDimensions(query["by"], query["and"])
  const sort = query["sort"] ?? (isOfTime(by[0]) ? undefined : "charge")
  const now = Date.now() / 1000
  const step = since !== undefined && (until ?? now) - since <= twoDays ? "hour" : "day"
  const split = by.find((dimension) => !isOfTime(dimension))
  return (
    <Page
      title="Usage"
      actions={
        <a class="button" href={addressOf("/usage.csv", { ...asked, by: by.join(","), sort })} download>
          CSV
        </a>
      }
    >
      <FilterBar filters={filters} />
      <UsageChart
        key={`${step} ${split}`}
        asked={asked}
        by={split}
        sort={sort}
        step={step}
        since={since}
        until={until}
      />
      <UsageTable key={by.join()} asked={asked} by={by} sort={sort} />
    </Page>
  )
}
