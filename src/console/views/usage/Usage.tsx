import type { ComponentChildren } from "preact"
import { type RequestCount, reportedCounts } from "../../../services/requests/RequestCounts.ts"
import { addressOf, type QueryValues } from "../../api/Client.ts"
import { usePages, useResource } from "../../api/useResource.ts"
import { useRoute } from "../../CurrentRoute.ts"
import {
  formatCount,
  formatCounted,
  formatMarginShare,
  formatShare,
  formatShort,
  formatUsd
} from "../../format/Amount.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { type Filter, FilterBar, useFilters, useRange } from "../../parts/FilterBar.tsx"
import { Page } from "../../parts/Page.tsx"
import { type Column, PagedTable } from "../../parts/Table.tsx"
import { Long } from "../../parts/Values.tsx"
import { link, type Query, withQuery } from "../../Route.ts"
import { useVisible } from "../../Session.ts"
import { type Measure, type Step, stackOf } from "./Stack.ts"
import {
  type Dimension,
  dimensions,
  isOfTime,
  labelOf,
  readDimensions,
  requestsOf,
  type UsageAnswer,
  type UsageRow
} from "./UsageRow.ts"

type Asked = QueryValues & ReturnType<typeof useRange>

const tones = ["c1", "c2", "c3", "c4", "c5"] as const
const most = 1000

const measures: Readonly<Record<string, readonly [Measure, string]>> = {
  requests: ["requests", "Requests"],
  cost: ["cost_usd", "Cost"]
}

/** Each day or hour by its largest groups, measured by what the table is sorted by. */
const UsageChart = ({
  asked,
  by,
  sort,
  step
}: {
  readonly asked: Asked
  readonly by: Dimension | undefined
  readonly sort: string | undefined
  readonly step: Step
}) => {
  const { since, until } = asked
  const totals = useResource<UsageAnswer>("/usage", { query: { ...asked, by: step, limit: most } })
  const split = by === undefined ? step : `${step},${by}`
  const parts = useResource<UsageAnswer>("/usage", { query: { ...asked, by: split, sort: "charge", limit: most } })
  const [measure, name] = measures[sort ?? ""] ?? ["spend_usd", "Charged"]
  const error = totals.error ?? parts.error
  if (error !== undefined) return <ErrorBox error={error} />
  const now = Date.now() / 1000
  const range = { since: totals.data && since, until: Math.min(until ?? now, now) }
  const wanted = { step, by, measure, ...range }
  const { series, times } = stackOf(totals.data?.data ?? [], parts.data?.data ?? [], wanted)
  const isUsd = measure !== "requests"
  return (
    <Chart
      title={`${name} per ${step}${step === "day" ? " (UTC)" : ""}`}
      step={step}
      times={times}
      isStacked
      format={isUsd ? formatUsd : formatCount}
      formatTick={(value) => (isUsd ? `$${formatShort(value)}` : formatShort(value))}
      series={series.map((one, index) => ({
        ...one,
        kind: "bar",
        tone: one.label === "all others" ? "soft" : (tones[index] ?? "soft")
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
  title: "Cached",
  kind: "amount",
  value: ({ cache_hit_rate }) => (cache_hit_rate === null ? null : formatShare(cache_hit_rate))
}

/** Two dimensions and the count of unknown costs leave no room for it. */
const marginShare: Column<UsageRow> = {
  title: "Margin %",
  kind: "amount",
  isInternal: true,
  value: ({ cost_usd, margin_usd }) => formatMarginShare(margin_usd, cost_usd)
}

const statedCost: Column<UsageRow> = {
  title: "Stated cost",
  kind: "usd",
  isInternal: true,
  value: ({ stated_cost_usd }) => stated_cost_usd
}

const unknownCosts: Column<UsageRow> = {
  title: "Cost unknown",
  kind: "number",
  isInternal: true,
  value: ({ cost_unknown }) => cost_unknown || null
}

/** Tokens always, and what else was counted. */
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
        { title, kind: "number", value: (row) => row[name] },
        ...(name === "prompt_tokens" ? [cachedShare] : [])
      ]
    ),
    { ...sorted("Charged", "charge"), kind: "usd", value: ({ spend_usd }) => spend_usd },
    { ...sorted("Cost", "cost"), kind: "usd", isInternal: true, value: ({ cost_usd }) => cost_usd },
    ...(totals?.stated_cost_usd ? [statedCost] : []),
    { ...sorted("Margin", "margin"), kind: "usd", isInternal: true, value: ({ margin_usd }) => margin_usd },
    ...(hasUnknownCosts && by.length > 1 ? [] : [marginShare]),
    ...(hasUnknownCosts ? [unknownCosts] : [])
  ]
}

/** The rows so far, and the totals of all. */
const UsageTable = ({
  asked,
  by,
  sort
}: {
  readonly asked: QueryValues
  readonly by: ReadonlyArray<Dimension>
  readonly sort: string | undefined
}) => {
  const { query } = useRoute()
  const pages = usePages<UsageRow, UsageAnswer>("/usage", { ...asked, by: by.join(","), sort })
  const totals = pages.first?.totals
  const unknown = totals?.cost_unknown ?? 0
  return (
    <>
      <PagedTable
        label="Usage"
        pages={pages}
        rowKey={(row: UsageRow) => JSON.stringify(by.map((dimension) => row[dimension]))}
        columns={columnsOf(by, query, sort, totals)}
        empty="There were no requests."
        total={totals}
      />
      {unknown > 0 && (
        <p class="soft">
          The cost of {formatCounted(unknown, "request")} is unknown. Margins leave them out, so a margin is not what is
          charged less the cost.
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
  const asked = { ...useFilters(others), since, until }
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
      <UsageChart key={`${step} ${split}`} asked={asked} by={split} sort={sort} step={step} />
      <UsageTable key={by.join()} asked={asked} by={by} sort={sort} />
    </Page>
  )
}
