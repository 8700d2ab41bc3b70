import type { ComponentChildren } from "preact"
import { type RequestCount, reportedCounts } from "../../../services/requests/RequestCounts.ts"
import type { QueryValues } from "../../api/ApiClient.ts"
import { usePages, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../BrowserState.ts"
import {
  formatCount,
  formatCounted,
  formatMarginShare,
  formatShare,
  formatShort,
  formatShortUsd,
  formatUsd
} from "../../format/Amount.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar, useFilters, useRange } from "../../parts/FilterBar.tsx"
import { ExportButton, Page } from "../../parts/Page.tsx"
import { type Column, PagedTable } from "../../parts/Table.tsx"
import { Long } from "../../parts/Values.tsx"
import { link, type Query, withQuery } from "../../Route.ts"
import { useVisible } from "../../SignedIn.ts"
import {
  type Dimension,
  dimensions,
  isOfTime,
  labelOf,
  type Measure,
  readDimensions,
  requestsOf,
  type Step,
  stackOf,
  type UsageAnswer,
  type UsageRow
} from "./UsageRow.ts"

type UsageQuery = QueryValues & ReturnType<typeof useRange>

const tones = ["c1", "c2", "c3", "c4", "c5"] as const
const maxRows = 1000

const measures: Readonly<Record<string, readonly [Measure, string]>> = {
  requests: ["requests", "Requests"],
  cost: ["cost_usd", "Cost"]
}

/** Stacks the largest groups of each day or hour. The measure is the column that sorts the table. */
const UsageChart = ({
  by,
  query,
  sort,
  step
}: {
  readonly query: UsageQuery
  readonly by: Dimension | undefined
  readonly sort: string | undefined
  readonly step: Step
}) => {
  const { since, until } = query
  const totals = useResource<UsageAnswer>("/usage", { query: { ...query, by: step, limit: maxRows } })
  const split = by === undefined ? step : `${step},${by}`
  const parts = useResource<UsageAnswer>("/usage", { query: { ...query, by: split, sort: "charge", limit: maxRows } })
  const [measure, name] = measures[sort ?? ""] ?? ["spend_usd", "Charged"]
  const error = totals.error ?? parts.error
  if (error !== undefined) return <ErrorBox error={error} />
  const now = Date.now() / 1000
  const range = { since: totals.data && since, until: Math.min(until ?? now, now) }
  const options = { step, by, measure, ...range }
  const { series, times } = stackOf(totals.data?.data ?? [], parts.data?.data ?? [], options)
  const isUsd = measure !== "requests"
  return (
    <Chart
      title={`${name} per ${step}${step === "day" ? " (UTC)" : ""}`}
      step={step}
      times={times}
      isStacked
      format={isUsd ? formatUsd : formatCount}
      isWhole={!isUsd}
      formatTick={isUsd ? formatShortUsd : formatShort}
      series={series.map((group, index) => ({
        ...group,
        kind: "bar",
        tone: group.label === "Other" ? "soft" : (tones[index] ?? "soft")
      }))}
    />
  )
}

const isTotal = (row: UsageRow, by: ReadonlyArray<Dimension>) => by.every((dimension) => row[dimension] === undefined)

const Group = ({
  dimension,
  isFirst,
  row
}: {
  readonly row: UsageRow
  readonly dimension: Dimension
  readonly isFirst: boolean
}): ComponentChildren => {
  const value = row[dimension]
  if (value === undefined) return ""
  if (value === null) return <span class="soft">none</span>
  const label = <Long text={labelOf(row, dimension, isFirst)} />
  if (dimension === "org") return <a href={link(["organizations", value])}>{label}</a>
  if (dimension === "key") return <span title={value}>{label}</span>
  return (
    <code>
      <Long text={value} />
    </code>
  )
}

const cachedShare: Column<UsageRow> = {
  title: "Cache hit rate",
  kind: "amount",
  narrow: "hidden",
  value: ({ cache_hit_rate }) => (cache_hit_rate === null ? null : formatShare(cache_hit_rate))
}

/** Omitted from a table with two dimensions and a column of unknown costs, because it would be too wide. */
const marginShare: Column<UsageRow> = {
  title: "Margin %",
  kind: "amount",
  isInternal: true,
  value: ({ cost_usd, margin_usd }) => formatMarginShare(margin_usd, cost_usd)
}

const statedCost: Column<UsageRow> = {
  title: "Provider-reported cost",
  kind: "usd",
  isInternal: true,
  value: ({ stated_cost_usd }) => stated_cost_usd
}

const unknownCosts: Column<UsageRow> = {
  title: "Requests with unknown cost",
  kind: "number",
  isInternal: true,
  value: ({ cost_unknown }) => cost_unknown || null
}

/** Whether the cost of every charged request is unknown. */
const isUnknown = ({ cost_unknown, margin_usd }: UsageRow): boolean => cost_unknown > 0 && margin_usd === null

/** Returns the token counts, and of the other counts those whose total is above zero. */
const countsIn = (totals: UsageAnswer["totals"] | undefined): ReadonlyArray<RequestCount> =>
  reportedCounts.filter(({ name, unit }) => unit === "tokens" || Number(totals?.[name]) > 0)

const columnsOf = (
  by: ReadonlyArray<Dimension>,
  query: Query,
  sort: string | undefined,
  totals: UsageAnswer["totals"] | undefined
): ReadonlyArray<Column<UsageRow>> => {
  const hasUnknownCosts = totals !== undefined && totals.cost_unknown > 0
  const sorted = (title: string, name: string) => ({
    title,
    sortHref: withQuery({ path: ["usage"], query }, { sort: name }),
    isSorted: sort === name
  })
  return [
    ...by.map(
      (dimension, index): Column<UsageRow> => ({
        title: dimensions[dimension].title,
        kind: "custom",
        share: 40 / by.length,
        hint: (row) => (isTotal(row, by) ? undefined : labelOf(row, dimension, index === 0)),
        value: (row) =>
          index === 0 && isTotal(row, by) ? "Total" : <Group row={row} dimension={dimension} isFirst={index === 0} />
      })
    ),
    {
      ...sorted("Requests", "requests"),
      kind: "custom",
      isAmount: true,
      value: (row) => {
        const href = isTotal(row, by) ? undefined : requestsOf(row, by, query)
        return href === undefined ? formatCount(row.requests) : <a href={href}>{formatCount(row.requests)}</a>
      }
    },
    ...countsIn(totals).flatMap(
      ({ name, title }): ReadonlyArray<Column<UsageRow>> => [
        { title, kind: "number", narrow: "hidden", value: (row) => row[name] },
        ...(name === "prompt_tokens" ? [cachedShare] : [])
      ]
    ),
    { ...sorted("Charged", "charge"), kind: "usd", value: ({ spend_usd }) => spend_usd },
    {
      ...sorted("Cost", "cost"),
      kind: "usd",
      isInternal: true,
      none: "unknown",
      value: (row) => (isUnknown(row) ? null : row.cost_usd)
    },
    ...(totals?.stated_cost_usd ? [statedCost] : []),
    {
      ...sorted("Margin", "margin"),
      kind: "usd",
      isInternal: true,
      none: (row) => (isUnknown(row) ? "unknown" : undefined),
      value: ({ margin_usd }) => margin_usd
    },
    ...(hasUnknownCosts && by.length > 1 ? [] : [marginShare]),
    ...(hasUnknownCosts ? [unknownCosts] : [])
  ]
}

/** The rows loaded so far, and the totals of all rows. */
const UsageTable = ({
  by,
  query: filterQuery,
  sort
}: {
  readonly query: QueryValues
  readonly by: ReadonlyArray<Dimension>
  readonly sort: string | undefined
}) => {
  const { query } = useRoute()
  const pages = usePages<UsageRow, UsageAnswer>("/usage", { ...filterQuery, by: by.join(","), sort })
  const totals = pages.first?.totals
  const unknown = totals?.cost_unknown ?? 0
  const isFiltered = generalFilters.some((filter) => "name" in filter && query[filter.name])
  return (
    <>
      <PagedTable
        label="Usage"
        pages={pages}
        rowKey={(row: UsageRow) => JSON.stringify(by.map((dimension) => row[dimension]))}
        columns={columnsOf(by, query, sort, totals)}
        empty={isFiltered ? "No requests match." : "No requests in this period."}
        total={totals}
      />
      {unknown > 0 && (
        <p class="soft">
          Margins exclude {formatCounted(unknown, "request")} with unknown cost, so Margin does not equal Charged minus
          Cost.
        </p>
      )}
    </>
  )
}

const fallback = "30d"

const choices = Object.entries(dimensions).map(([name, { isInternal = false, title }]) => ({
  option: [name, title] as const,
  isInternal
}))

const generalFilters: ReadonlyArray<Filter> = [
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID", isInternal: true },
  { kind: "text", name: "key", label: "Key", placeholder: "key_…" },
  { kind: "text", name: "model", label: "Model" },
  { kind: "text", name: "route", label: "Route", placeholder: "model@provider", isInternal: true },
  { kind: "select", name: "surface", label: "Endpoint type", options: ["chat", "image", "video"] },
  { kind: "select", name: "status", label: "Status", options: ["200", "202", "4xx", "5xx", "402", "429", "499", "503"] }
]

const twoDays = 2 * 86_400

export const Usage = () => {
  const { query } = useRoute()
  const options = useVisible(choices).map(({ option }) => option)
  const filters: ReadonlyArray<Filter> = [
    { kind: "range", fallback },
    {
      kind: "select",
      name: "by",
      isPinned: true,
      label: "Group by",
      options: options.filter(([name]) => name !== "model"),
      none: "Model"
    },
    { kind: "select", name: "and", label: "Then by", isPinned: true, options, none: "none" },
    ...generalFilters
  ]
  const { since, until } = useRange(fallback)
  const filterQuery = { ...useFilters(generalFilters), since, until }
  const by = readDimensions(query["by"], query["and"])
  const sort = query["sort"] ?? (isOfTime(by[0]) ? undefined : "charge")
  const now = Date.now() / 1000
  const step = since !== undefined && (until ?? now) - since <= twoDays ? "hour" : "day"
  const split = by.find((dimension) => !isOfTime(dimension))
  return (
    <Page title="Usage" actions={<ExportButton path="/usage" query={{ ...filterQuery, by: by.join(","), sort }} />}>
      <FilterBar filters={filters} />
      <UsageChart key={`${step} ${split}`} query={filterQuery} by={split} sort={sort} step={step} />
      <UsageTable key={by.join()} query={filterQuery} by={by} sort={sort} />
    </Page>
  )
}
