import type { QueryValues } from "../../api/Client.ts"
import { useResource } from "../../api/useResource.ts"
import { formatCount, formatShort, formatUsd } from "../../format/Amount.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { type Measure, type Step, stackOf } from "./Stack.ts"
import type { Dimension, UsageAnswer } from "./UsageRow.ts"

const tones = ["c1", "c2", "c3", "c4", "c5"] as const
const most = 1000

const measures: Readonly<Record<string, readonly [Measure, string]>> = {
  requests: ["requests", "Requests"],
  cost: ["cost_usd", "Cost"]
}

/** Each day or hour by its largest groups, measured by what the table is sorted by. */
export const UsageChart = ({
  asked,
  by,
  sort,
  since,
  step,
  until
}: {
  readonly asked: QueryValues
  readonly by: Dimension | undefined
  readonly sort: string | undefined
  readonly step: Step
  readonly since: number | undefined
  readonly until: number | undefined
}) => {
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
