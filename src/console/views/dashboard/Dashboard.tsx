import type { ComponentChildren } from "preact"
import type { DashboardRecord } from "../../../services/admin/DashboardRecord.ts"
import { useResource } from "../../api/useResource.ts"
import {
  formatCount,
  formatCounted,
  formatMarginShare,
  formatShare,
  formatShort,
  formatShortUsd,
  formatUsd
} from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Headline, TileLabel, Time, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { CircuitBadge } from "../models/ModelRoutes.tsx"

type DashboardData = typeof DashboardRecord.Encoded
type Kpis = DashboardData["today"]
type Alert = DashboardData["attention"][number]

/** Growth of errors or latency by this fraction or more is shown as a problem. */
const minProblemGrowth = 0.1

/** A larger change says little, because yesterday had few requests. */
const maxChange = 10

/** A KPI of today, compared with yesterday. */
const KpiTile = ({
  before,
  children,
  href,
  isProblemIfRising = false,
  label,
  period,
  share,
  unit,
  value
}: {
  readonly label: string
  /** The view that explains the value. */
  readonly href: string
  /** The period of the values. The default is the day so far. */
  readonly period?: string
  readonly value: number | null
  readonly before: number | null
  readonly isProblemIfRising?: boolean
  readonly unit: Unit
  /** Both values as percentages. */
  readonly share?: { readonly value: string | null; readonly before: string | null } | undefined
  /** A remark below the values. */
  readonly children?: ComponentChildren
}) => {
  const format = (amount: number | null) => formatValue(unit, amount)
  const change = value === null || before === null || before === 0 ? undefined : (value - before) / Math.abs(before)
  const isProblem =
    isProblemIfRising && (change === undefined ? before === 0 && Number(value) > 0 : change >= minProblemGrowth)
  return (
    <div class="stat">
      <TileLabel label={label} href={href} name={period === undefined ? `${label} today` : `${label}, ${period}`} />
      <dd class="figure">{unit === "usd" && value !== null ? <Headline amount={value} /> : format(value)}</dd>
      <dd class="change">
        {change !== undefined && change !== 0 && (
          <span class={isProblem ? "problem" : ""}>
            {Math.abs(change) > maxChange && "over "}
            {change > 0 ? "+" : "−"}
            {formatShare(Math.min(maxChange, Math.abs(change)))}
          </span>
        )}{" "}
        <span class="soft">
          {period && `${period}; `}by this time yesterday: {format(before)}
        </span>
      </dd>
      {share?.value && (
        <dd class="change">
          {share.value} of charges {share.before && <span class="soft">(yesterday {share.before})</span>}
        </dd>
      )}
      {children && <dd class="change warn">{children}</dd>}
    </div>
  )
}

type Unit = "count" | "usd" | "millis"

/** The range of the tiles, except those of latency. */
const since = "today"

/** Latencies cover the successful requests of the last hour. */
const latency = {
  unit: "millis",
  href: link(["requests"], { since: "1h", status: "ok" }),
  period: "last hour",
  isProblemIfRising: true
} as const

const tiles: ReadonlyArray<{
  readonly label: string
  readonly name: keyof Kpis
  readonly unit: Unit
  readonly href: string
  readonly period?: string
  readonly isProblemIfRising?: boolean
}> = [
  { label: "Requests", name: "requests", unit: "count", href: link(["requests"], { since }) },
  { label: "Charged", name: "charge_usd", unit: "usd", href: link(["usage"], { since }) },
  { label: "Cost", name: "cost_usd", unit: "usd", href: link(["usage"], { since, sort: "cost" }) },
  { label: "Margin", name: "margin_usd", unit: "usd", href: link(["usage"], { since, sort: "margin" }) },
  {
    label: "Errors",
    name: "errors",
    unit: "count",
    href: link(["requests"], { since, status: "error" }),
    isProblemIfRising: true
  },
  {
    label: "Rejected requests",
    name: "refusals",
    unit: "count",
    href: link(["requests"], { since, status: "rejected" })
  },
  { label: "Time to first byte, p50", name: "first_byte_p50_ms", ...latency },
  { label: "Time to first byte, p95", name: "first_byte_p95_ms", ...latency }
]

/** Remarks if some requests have an unknown cost. */
const remarks: Readonly<Partial<Record<keyof Kpis, (requests: string) => string>>> = {
  cost_usd: (requests) => `${requests} with unknown cost`,
  margin_usd: (requests) => `excludes ${requests} with unknown cost`
}

/** A missing amount is a cost or margin that the gateway does not know. A missing duration has no requests. */
const formatValue = (unit: Unit, value: number | null) => {
  if (value === null) return unit === "usd" ? "unknown" : "–"
  if (unit === "usd") return <Usd amount={value} />
  return unit === "count" ? formatCount(value) : formatMillis(value)
}

const valueOf = (kpis: Kpis, name: keyof Kpis) => (name === "cost_usd" && kpis.margin_usd === null ? null : kpis[name])

const marginShareOf = ({ cost_usd, margin_usd }: Kpis) => formatMarginShare(margin_usd, cost_usd)

/** Today so far, compared with the same hours of yesterday. */
const Tiles = ({ today, yesterday }: Pick<DashboardData, "today" | "yesterday">) => (
  <dl class="tiles">
    {tiles.map(({ name, unit, ...tile }) => (
      <KpiTile
        key={name}
        {...tile}
        value={valueOf(today, name)}
        before={valueOf(yesterday, name)}
        share={name === "margin_usd" ? { value: marginShareOf(today), before: marginShareOf(yesterday) } : undefined}
        unit={unit}
      >
        {today.cost_unknown > 0 && remarks[name]?.(formatCounted(today.cost_unknown, "request"))}
      </KpiTile>
    ))}
  </dl>
)

const everySeconds = 10

const kinds: Readonly<Record<Alert["kind"], readonly [text: string, tone: Tone]>> = {
  low_balance: ["low balance", "warn"],
  stuck_video: ["stuck video", "bad"],
  webhook_failing: ["webhook failing", "warn"],
  webhook_failed: ["webhook failed", "bad"],
  catalog_problem: ["catalog", "bad"],
  old_hold: ["stale hold", "warn"],
  model_down: ["model down", "bad"],
  high_error_rate: ["many errors", "bad"],
  route_failing: ["route failing", "warn"],
  circuit: ["route paused", "warn"],
  route_disabled: ["route disabled", "soft"],
  sold_below_cost: ["sold below cost", "bad"],
  discount_below_cost: ["discount below cost", "warn"],
  cost_unknown: ["unknown cost", "warn"],
  cost_drift: ["cost differs from catalog", "warn"],
  payment_refused: ["payment not credited", "bad"],
  payment_disputed: ["payment disputed", "bad"],
  payment_reversal_amount: ["USD amount missing", "bad"]
}

const AlertList = ({ items }: { readonly items: ReadonlyArray<Alert> }) => (
  <Section title="Needs attention">
    {items.length === 0 ? (
      <p class="soft">
        <Badge tone="good">all clear</Badge> Nothing needs attention.
      </p>
    ) : (
      <ul class="attention panel">
        {items.map(({ detail, href, kind, title }) => {
          const [text, tone] = kinds[kind]
          return (
            <li key={`${kind} ${href} ${title}`}>
              <Badge tone={tone}>{text}</Badge>
              <a href={href}>{title}</a>
              <span class="soft">{detail}</span>
            </li>
          )
        })}
      </ul>
    )}
  </Section>
)

const Hours = ({ hours }: Pick<DashboardData, "hours">) => {
  const times = hours.map(({ hour }) => hour)
  return (
    <div class="halves">
      <Chart
        title="Requests per hour"
        step="hour"
        times={times}
        isWhole
        format={formatCount}
        formatTick={formatShort}
        series={[
          { label: "requests", kind: "bar", tone: "accent", values: hours.map(({ requests }) => requests) },
          { label: "errors", kind: "bar", tone: "bad", values: hours.map(({ errors }) => errors) }
        ]}
      />
      <Chart
        title="Charged per hour"
        step="hour"
        times={times}
        format={formatUsd}
        formatTick={formatShortUsd}
        series={[{ label: "charged", kind: "bar", tone: "accent", values: hours.map(({ charge_usd }) => charge_usd) }]}
      />
    </div>
  )
}

const Holds = ({ holds: { amount_usd, oldest, open } }: Pick<DashboardData, "holds">) => (
  <Section title="Open holds" actions={<a href={link(["holds"])}>View all holds</a>}>
    <Facts>
      <Fact name="Count">{formatCount(open)}</Fact>
      <Fact name="Amount">
        <a href={link(["holds"])}>
          <Usd amount={amount_usd} />
        </a>
      </Fact>
      <Fact name="Oldest">
        {oldest && (
          <>
            <Usd amount={oldest.amount_usd} /> of <a href={link(["organizations", oldest.org])}>{oldest.org_name}</a>,{" "}
            <Time at={oldest.created_at} isRelative />
          </>
        )}
      </Fact>
    </Facts>
  </Section>
)

const ProviderHealth = ({ circuits }: Pick<DashboardData, "circuits">) => (
  <Section title="Provider health">
    <Table
      label="Provider health"
      empty="No route is paused or disabled."
      rows={circuits}
      rowKey={({ route, state }) => `${route} ${state}`}
      columns={[
        { title: "Route", kind: "code", value: ({ route }) => route },
        {
          title: "State",
          kind: "custom",
          value: ({ state, until }) => (
            <>
              {state === "disabled" ? <Badge>disabled</Badge> : <CircuitBadge circuit={state} />}
              {until !== null && (
                <small class="soft">
                  next try <Time at={until} isRelative />
                </small>
              )}
            </>
          )
        },
        { title: "Reason", kind: "text", value: ({ last_error, note }) => note ?? last_error }
      ]}
    />
  </Section>
)

export const Dashboard = () => {
  const dashboard = useResource<DashboardData>("/now", { everySeconds })
  return (
    <Page
      title="Dashboard"
      actions={
        dashboard.data && (
          <span class="soft">
            Updated <Time at={dashboard.data.at} />
          </span>
        )
      }
    >
      <Loaded resource={dashboard}>
        {({ attention, circuits, holds, hours, today, yesterday }) => (
          <>
            <Section title="Today (UTC)">
              <Tiles today={today} yesterday={yesterday} />
            </Section>
            <AlertList items={attention} />
            <Section title="Last 48 hours">
              <Hours hours={hours} />
            </Section>
            <div class="halves">
              <Holds holds={holds} />
              <ProviderHealth circuits={circuits} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}
