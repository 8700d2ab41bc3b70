import type { ComponentChildren } from "preact"
import { formatShare } from "../format/Amount.ts"

/** How much more, as a share; undefined where there is nothing to compare with. */
const changeOf = (value: number | null, before: number | null): number | undefined =>
  value === null || before === null || before === 0 ? undefined : (value - before) / Math.abs(before)

/** A figure beside the same of the day before. */
export const Stat = ({
  before,
  children,
  isBadWhenUp = false,
  label,
  value
}: {
  readonly label: string
  readonly value: number | null
  readonly before: number | null
  readonly isBadWhenUp?: boolean
  /** The value as it is shown. */
  readonly children: ComponentChildren
}) => {
  const change = changeOf(value, before)
  const isWrong = isBadWhenUp && change !== undefined && change > 0
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd>{children}</dd>
      <dd class={isWrong ? "change bad" : "change"}>
        {change === undefined ? "–" : `${change >= 0 ? "▲" : "▼"} ${formatShare(Math.abs(change))}`}
      </dd>
    </div>
  )
}
