import { formatMillis } from "../../format/Dates.ts"
import { Badge, Long, Usd } from "../../parts/Values.tsx"
import type { Attempt, RequestDetail } from "./RequestRows.ts"
import { outcomeOf } from "./RequestRows.ts"
import { axisEnd, layOut, type TimelineRow, valueTicks } from "./Timeline.ts"

export const OutcomeBadge = ({
  attempt: { outcome, status }
}: {
  readonly attempt: Pick<Attempt, "outcome" | "status">
}) => {
  const { text, tone } = outcomeOf(outcome)
  return (
    <Badge tone={tone}>
      {text}
      {status !== undefined && ` ${status}`}
    </Badge>
  )
}

const percent = (share: number) => `${Math.min(100, share * 100)}%`

const AttemptDetails = ({ attempt }: { readonly attempt: Attempt }) => (
  <>
    <OutcomeBadge attempt={attempt} /> <code>{attempt.route}</code>
    {attempt.detail && (
      <q>
        <Long text={attempt.detail} />
      </q>
    )}
    {attempt.cost_usd !== undefined && (
      <span>
        cost <Usd amount={attempt.cost_usd} />
      </span>
    )}
    {attempt.stated_cost_usd !== undefined && (
      <span>
        provider-reported cost <Usd amount={attempt.stated_cost_usd} />
      </span>
    )}
    {attempt.provider_request_id && (
      <span class="soft">
        provider {attempt.provider}, request ID <code>{attempt.provider_request_id}</code>
      </span>
    )}
  </>
)

const Row = ({ end, row }: { readonly row: TimelineRow; readonly end: number }) => {
  const { attempt, detail, from, name, to, tone } = row
  const isPoint = from === to && attempt === undefined
  return (
    <li>
      <div class="words">
        <b>{name}</b> {attempt === undefined ? detail && <Long text={detail} /> : <AttemptDetails attempt={attempt} />}
      </div>
      <div class="track">
        <i
          class={isPoint ? `point ${tone}` : `bar ${tone}`}
          style={{
            left: percent(from / end),
            width: isPoint ? "" : percent((to - from) / end),
            background: `var(--${tone})`
          }}
        />
      </div>
      <span class="took">{isPoint ? `at ${formatMillis(to)}` : formatMillis(to - from)}</span>
    </li>
  )
}

/** Draws attempts and events on one time axis. */
export const TimelineList = ({ request }: { readonly request: RequestDetail }) => {
  const rows = layOut(request.timeline, request.video?.attempts ?? request.attempts)
  const end = axisEnd(rows)
  const ticks = valueTicks(end).filter((tick) => tick <= end)
  return (
    <div class="timeline panel">
      <div class="axis" aria-hidden="true">
        <div>
          {ticks.map((tick) => (
            <span key={tick} style={{ left: percent(tick / end) }}>
              {formatMillis(tick)}
            </span>
          ))}
        </div>
      </div>
      <ol>
        {rows.map((row, index) => (
          <Row key={index} row={row} end={end} />
        ))}
      </ol>
      {rows.filter(({ attempt }) => attempt !== undefined).length > 1 && (
        <p class="soft">The log keeps only the duration of each attempt, so attempts are drawn one after another.</p>
      )}
    </div>
  )
}
