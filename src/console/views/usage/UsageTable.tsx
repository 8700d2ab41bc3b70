import type { ComponentChildren } from "preact"
import { type RequestCount, reportedCounts } from "../../../services/requests/RequestCounts.ts"
import type { QueryValues } from "../../api/Client.ts"
import { usePages } from "../../api/usePages.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { formatCount, formatCounted, formatShare } from "../../format/Amount.ts"
import { formatMarginShare } from "../../format/Margin.ts"
import type { Column } from "../../parts/Table.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { Long } from "../../parts/Values.tsx"
import { link, type Query, withQuery } from "../../Route.ts"
import { requestsOf } from "./RowLink.ts"
import { type Dimension, labelOf, type UsageAnswer, type UsageRow } from "./UsageRow.ts"

export const titles: Readonly<Record<Dimension, string>> = {
  org: "Organization",
  key: "Key",
  model: "Model",
  route: "Route",
  provider: "Provider",
  surface: "Surface",
  status: "Status",
  tag: "Tag",
  day: "Day (UTC)",
  hour: "Hour (UTC)"
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
        title: titles[dimension],
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
    ...(totals?.stated_cost_usd
      ? [
          {
            title: "Stated cost",
            kind: "usd",
            isInternal: true,
            value: ({ stated_cost_usd }: UsageRow) => stated_cost_usd
          } as const
        ]
      : []),
    { ...sorted("Margin", "margin"), kind: "usd", isInternal: true, value: ({ margin_usd }) => margin_usd },
    ...(hasUnknownCosts && by.length > 1 ? [] : [marginShare]),
    ...(hasUnknownCosts
      ? [
          {
            title: "Cost unknown",
            kind: "number",
            isInternal: true,
            value: ({ cost_unknown }: UsageRow) => cost_unknown || null
          } as const
        ]
      : [])
  ]
}

/** The rows so far, and the totals of all. */
export const UsageTable = ({
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
