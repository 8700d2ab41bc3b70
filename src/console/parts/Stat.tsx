import type { ComponentChildren } from "preact"
import { formatShare } from "../format/Amount.ts"

/** From this growth on, what grows when things go wrong is shown as wrong. */
const alarming = 0.1

/** A figure of today, and how it compares with yesterday's. */
export const Stat = ({
  before,
  children,
  isBadWhenUp = false,
  label,
  share,
  show,
  value
}: {
  readonly label: string
  readonly value: number | null
  readonly before: number | null
  readonly isBadWhenUp?: boolean
  readonly show: (value: number | null) => ComponentChildren
  /** What both are in percent. */
  readonly share?: { readonly value: string | null; readonly before: string | null } | undefined
  /** A remark. */
  readonly children?: ComponentChildren
}) => {
  const change = value === null || before === null || before === 0 ? undefined : (value - before) / Math.abs(before)
  const isWrong = isBadWhenUp && (change === undefined ? before === 0 && Number(value) > 0 : change >= alarming)
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd class="figure">{show(value)}</dd>
      <dd class="change">
        {change !== undefined && change !== 0 && (
          <span class={isWrong ? "problem" : ""}>
            {change > 0 ? "+" : "−"}
            {formatShare(Math.abs(change))}
          </span>
        )}{" "}
        <span class="soft">yesterday {show(before)}</span>
      </dd>
      {share && (
        <dd class="change">
          {share.value ?? "–"} <span class="soft">yesterday {share.before ?? "–"}</span>
        </dd>
      )}
      {children && <dd class="change warn">{children}</dd>}
    </div>
  )
}
