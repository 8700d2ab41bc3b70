import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import { nounFor } from "../../../domain/Wording.ts"
import type { UsagePage } from "../../../http/admin/UsageResource.ts"
import { useResource } from "../../api/useResource.ts"
import { formatCounted, formatMarginShare, formatShortUsd, formatUsd } from "../../format/Amount.ts"
import { formatUtc } from "../../format/Dates.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { Section } from "../../parts/Page.tsx"
import { Headline, Internal, TileLabel, Time, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useMembership } from "../../SignedIn.ts"
import type { Organization } from "./records.ts"

/** Shows a text such as `of $10.00 per month`, which follows the spent amount. */
export const CapAmount = ({ cap, period }: { readonly cap: number; readonly period: string | null }) => (
  <>
    {"of "}
    <Usd amount={cap} /> <span class="soft">{period === "total" ? "in total" : `per ${period}`}</span>
  </>
)

const days = 30

const formatDays = (count: number): string => `${count} ${nounFor(count, "day")}`
const daySeconds = 86_400

const Tile = ({
  children,
  href,
  label,
  remark
}: {
  readonly label: string
  /** The view that explains the value. */
  readonly href?: string
  readonly children: ComponentChildren
  readonly remark?: ComponentChildren
}) => (
  <div class="stat">
    <TileLabel label={label} href={href} />
    <dd class="figure">{children}</dd>
    <dd class="change soft">{remark}</dd>
  </div>
)

const Cap = ({ cap_period, cap_resets_at, cap_spent_usd, cap_usd }: Organization) =>
  cap_usd === null ? null : (
    <Tile
      label="Spending cap used"
      remark={
        <>
          <CapAmount cap={cap_usd} period={cap_period} />
          {cap_resets_at !== null && (
            <>
              , resets <Time at={cap_resets_at} isRelative />
            </>
          )}
        </>
      }
    >
      <Headline amount={cap_spent_usd} />
    </Tile>
  )

const Held = ({ held_usd, id }: Organization) => {
  const text = (
    <>
      <Usd amount={held_usd} /> reserved
    </>
  )
  return useMembership() === undefined ? <a href={link(["holds"], { organization: id })}>{text}</a> : text
}

const Margin = ({ cost_unknown, cost_usd, margin_usd }: (typeof UsagePage.Encoded)["totals"]) => {
  const share = formatMarginShare(margin_usd, cost_usd)
  return (
    <div>
      Margin <Usd amount={margin_usd} none="unknown" />
      {share && ` (${share})`}
      {cost_unknown > 0 && `, excludes ${formatCounted(cost_unknown, "request")} with unknown cost`}
    </div>
  )
}

/**
 * Returns the number of days that the available amount lasts at the average spend of the last 30 days, or of the days since
 * the organization was created. Returns undefined if nothing was spent.
 */
const estimateDaysLeft = ({ available_usd, created_at }: Organization, spent: number): number | undefined => {
  const age = Math.min(days, Math.max(1, (Date.now() / 1000 - created_at) / daySeconds))
  return spent <= 0 ? undefined : Math.max(0, (available_usd / spent) * age)
}

const formatDaysLeft = (daysLeft: number | undefined): string => {
  if (daysLeft === undefined) return "no spend yet"
  if (daysLeft >= 1000) return "over 1,000 days"
  return formatDays(daysLeft < 10 ? Number(daysLeft.toPrecision(2)) : Math.floor(daysLeft))
}

/** UTC days, including days without requests. */
const Days = ({ rows }: { readonly rows: (typeof UsagePage.Encoded)["data"] }) => {
  const spent = new Map(rows.map(({ day, spend_usd }) => [day, spend_usd]))
  const today = Math.floor(Date.now() / 1000 / daySeconds) * daySeconds
  const times = Array.from({ length: days }, (_, index) => today - (days - 1 - index) * daySeconds)
  const values = times.map((time) => spent.get(formatUtc(time).slice(0, 10)) ?? 0)
  return (
    <Section title={`Last ${days} days`}>
      <Chart
        title="Net charges per day (UTC)"
        step="day"
        times={times}
        format={formatUsd}
        formatTick={formatShortUsd}
        series={[{ label: "net charges", kind: "bar", tone: "accent", values }]}
      />
    </Section>
  )
}

export const Tiles = ({
  children,
  organization
}: {
  readonly organization: Organization
  /** Shown instead of the chart while the organization has sent no requests. */
  readonly children?: ComponentChildren
}) => {
  const { available_usd, balance_usd, held_usd, id, notify_below_usd } = organization
  const since = useMemo(() => Math.floor(Date.now() / 1000) - days * daySeconds, [])
  const usage = useResource<typeof UsagePage.Encoded>("/usage", {
    query: { organization: id, by: "day", since },
    everySeconds: 30
  })
  const month = useResource<typeof UsagePage.Encoded>("/usage", {
    query: { organization: id, by: "day", since: "this-month" },
    everySeconds: 30
  })
  const totals = usage.data?.totals
  const ofMonth = month.data?.totals
  const today = formatUtc(Date.now() / 1000).slice(0, 10)
  const spentToday = month.data?.data.find(({ day }) => day === today)?.spend_usd ?? 0
  const isMember = useMembership() !== undefined
  /** Members see only the usage of their own organization. */
  const usageLink = (range: string) => link(["usage"], { organization: isMember ? undefined : id, since: range })
  const daysLeft = totals && estimateDaysLeft(organization, totals.spend_usd)
  return (
    <>
      <dl class="tiles">
        <Tile
          label="Available"
          remark={notify_below_usd !== undefined && available_usd < notify_below_usd && "below the alert threshold"}
        >
          <Headline amount={available_usd} />
        </Tile>
        <Tile label="Balance" remark={held_usd > 0 && <Held {...organization} />}>
          <Headline amount={balance_usd} />
        </Tile>
        <Cap {...organization} />
        <Tile label="Spent today" href={usageLink("today")} remark="since midnight UTC">
          <Headline amount={month.data && spentToday} />
        </Tile>
        <Tile
          label="Spent this month"
          href={usageLink("this-month")}
          remark={ofMonth && formatCounted(ofMonth.requests, "request")}
        >
          <Headline amount={ofMonth?.spend_usd} />
        </Tile>
        <Tile
          label={`Spent, last ${days} days`}
          href={usageLink(`${days}d`)}
          remark={
            totals && (
              <>
                {formatCounted(totals.requests, "request")}
                {totals.requests > 0 && <Internal>{() => <Margin {...totals} />}</Internal>}
              </>
            )
          }
        >
          <Headline amount={totals?.spend_usd} />
        </Tile>
        <Tile label="Balance lasts" remark={`at the average spend of the last ${days} days`}>
          {formatDaysLeft(daysLeft)}
        </Tile>
      </dl>
      {totals?.requests === 0 && children}
      {totals !== undefined && totals.spend_usd > 0 && <Days rows={usage.data?.data ?? []} />}
    </>
  )
}
