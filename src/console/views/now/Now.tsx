import type { ComponentChildren } from "preact"
import type { NowRecord } from "../../../services/admin/now/Record.ts"
import { useResource } from "../../api/useResource.ts"
import { formatCount, formatMarginShare, formatShare, formatShort, formatUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { Chart } from "../../parts/chart/Chart.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Time, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"

type NowAnswer = typeof NowRecord.Encoded
type Figures = NowAnswer["today"]
type Circuit = NowAnswer["circuits"][number]
type Attention = NowAnswer["attention"][number]

/** From this growth on, what grows when things go wrong is shown as wrong. */
const alarming = 0.1

/** A figure of today, and how it compares with yesterday's. */
const Stat = ({
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
      <dt class="soft">{label}</dt>
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
const Tiles = ({ today, yesterday }: Pick<NowAnswer, "today" | "yesterday">) => (
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

const everySeconds = 10

const kinds: Readonly<Record<Attention["kind"], readonly [text: string, tone: Tone]>> = {
  low_balance: ["low balance", "warn"],
  stuck_video: ["stuck video", "bad"],
  webhook_failing: ["webhook", "warn"],
  webhook_failed: ["webhook", "bad"],
  catalog_problem: ["catalog", "bad"],
  old_hold: ["old hold", "warn"],
  model_down: ["model down", "bad"],
  circuit: ["route", "warn"],
  route_disabled: ["disabled", "soft"],
  sold_below_cost: ["loss", "bad"],
  cost_unknown: ["cost unknown", "warn"],
  cost_drift: ["cost drift", "warn"],
  payment_refused: ["payment", "bad"],
  payment_disputed: ["dispute", "bad"],
  payment_reversal_amount: ["payment", "bad"]
}

const AttentionList = ({ items }: { readonly items: ReadonlyArray<Attention> }) => (
  <Section title="Needs attention">
    {items.length === 0 ? (
      <p class="soft">
        <Badge tone="good">all well</Badge> Nothing needs attention.
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

const Hours = ({ hours }: Pick<NowAnswer, "hours">) => {
  const times = hours.map(({ hour }) => hour)
  return (
    <div class="halves">
      <Chart
        title="Requests per hour"
        step="hour"
        times={times}
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
        formatTick={(usd) => `$${formatShort(usd)}`}
        series={[{ label: "charged", kind: "bar", tone: "accent", values: hours.map(({ charge_usd }) => charge_usd) }]}
      />
    </div>
  )
}

const Holds = ({ holds: { amount_usd, oldest, open } }: Pick<NowAnswer, "holds">) => (
  <Section title="Open holds" actions={<a href={link(["holds"])}>All open holds</a>}>
    <Facts>
      <Fact name="Open">{formatCount(open)}</Fact>
      <Fact name="Held">
        <a href={link(["holds"])}>
          <Usd amount={amount_usd} />
        </a>
      </Fact>
      <Fact name="Oldest">
        {oldest && (
          <>
            <Usd amount={oldest.amount_usd} /> of <a href={link(["organizations", oldest.org])}>{oldest.org_name}</a>,{" "}
            <Time at={oldest.created_at} ago />
          </>
        )}
      </Fact>
    </Facts>
  </Section>
)

const states: Readonly<Record<Circuit["state"], Tone>> = { open: "bad", half_open: "warn", disabled: "soft" }

const Circuits = ({ circuits }: Pick<NowAnswer, "circuits">) => (
  <Section title="Circuits">
    <Table
      label="Circuits that are not closed"
      empty="Every route is served."
      rows={circuits}
      rowKey={({ route, state }) => `${route} ${state}`}
      columns={[
        { title: "Route", kind: "code", value: ({ route }) => route },
        {
          title: "State",
          kind: "custom",
          value: ({ state, until }) => (
            <>
              <Badge tone={states[state]}>{state.replace("_", " ")}</Badge>
              {until !== null && (
                <small class="soft">
                  tried again <Time at={until} ago />
                </small>
              )}
            </>
          )
        },
        { title: "Why", kind: "text", value: ({ last_error, note }) => note ?? last_error }
      ]}
    />
  </Section>
)

export const Now = () => {
  const now = useResource<NowAnswer>("/now", { everySeconds })
  return (
    <Page
      title="Now"
      actions={
        now.data && (
          <span class="soft">
            as of <Time at={now.data.at} />
          </span>
        )
      }
    >
      <Loaded resource={now}>
        {({ attention, circuits, holds, hours, today, yesterday }) => (
          <>
            <Tiles today={today} yesterday={yesterday} />
            <AttentionList items={attention} />
            <Section title="The last 48 hours">
              <Hours hours={hours} />
            </Section>
            <div class="halves">
              <Holds holds={holds} />
              <Circuits circuits={circuits} />
            </div>
          </>
        )}
      </Loaded>
    </Page>
  )
}
