import { useResource } from "../../api/useResource.ts"
import { formatCount, formatShort, formatUsd } from "../../format/Amount.ts"
import { Badge } from "../../parts/Badge.tsx"
import { Chart } from "../../parts/chart/Chart.tsx"
import { Fact, Facts } from "../../parts/Facts.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Tone } from "../../parts/Status.ts"
import { Table } from "../../parts/Table.tsx"
import { Time } from "../../parts/Time.tsx"
import { Usd } from "../../parts/Usd.tsx"
import { link } from "../../Route.ts"
import type { Attention, Circuit, NowAnswer } from "./NowAnswer.ts"
import { Tiles } from "./Tiles.tsx"

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
      <p class="calm">
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
    <div class="panel">
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
    </div>
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
