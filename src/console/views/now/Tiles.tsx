import { formatCount } from "../../format/Amount.ts"
import { formatMarginShare } from "../../format/Margin.ts"
import { formatMillis } from "../../format/Moment.ts"
import { Stat } from "../../parts/Stat.tsx"
import { Usd } from "../../parts/Usd.tsx"
import type { Figures, NowAnswer } from "./NowAnswer.ts"

type Unit = "count" | "usd" | "millis"

const tiles: ReadonlyArray<{
  readonly label: string
  readonly name: keyof Figures
  readonly unit: Unit
  readonly isBadWhenUp?: boolean
}> = [
  { label: "Requests", name: "requests", unit: "count" },
  { label: "Charged", name: "charge_usd", unit: "usd" },
  { label: "Cost", name: "cost_usd", unit: "usd" },
  { label: "Margin", name: "margin_usd", unit: "usd" },
  { label: "Errors", name: "errors", unit: "count", isBadWhenUp: true },
  { label: "Refusals", name: "refusals", unit: "count" },
  { label: "First byte, median", name: "first_byte_p50_ms", unit: "millis", isBadWhenUp: true },
  { label: "First byte, 95 %", name: "first_byte_p95_ms", unit: "millis", isBadWhenUp: true }
]

/** Where the costs of some requests are unknown. */
const remarks: Readonly<Partial<Record<keyof Figures, (count: string) => string>>> = {
  cost_usd: (count) => `${count} without a known cost`,
  margin_usd: (count) => `leaves out ${count} without a known cost`
}

const show = (unit: Unit, value: number | null) => {
  if (value === null) return "–"
  if (unit === "usd") return <Usd amount={value} />
  return unit === "count" ? formatCount(value) : formatMillis(value)
}

const valueOf = (figures: Figures, name: keyof Figures) =>
  name === "cost_usd" && figures.margin_usd === null ? null : figures[name]

const marginShareOf = ({ cost_usd, margin_usd }: Figures) => formatMarginShare(margin_usd, cost_usd)

/** Today beside the same span of yesterday. */
export const Tiles = ({ today, yesterday }: Pick<NowAnswer, "today" | "yesterday">) => (
  <dl class="tiles">
    {tiles.map(({ name, unit, ...tile }) => (
      <Stat
        key={name}
        {...tile}
        value={valueOf(today, name)}
        before={valueOf(yesterday, name)}
        share={name === "margin_usd" ? { value: marginShareOf(today), before: marginShareOf(yesterday) } : undefined}
        show={(value) => show(unit, value)}
      >
        {today.cost_unknown > 0 && remarks[name]?.(formatCount(today.cost_unknown))}
      </Stat>
    ))}
  </dl>
)
