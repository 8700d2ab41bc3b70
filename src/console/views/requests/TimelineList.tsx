import { formatMillis } from "../../format/Moment.ts"
import { Badge, Long, Usd } from "../../parts/Values.tsx"
import type { Attempt, RequestDetail } from "./Outcome.ts"
import { outcomeOf } from "./Outcome.ts"
import { axisEnd, layOut, type TimelineRow, valueTicks } from "./Timeline.ts"

export const OutcomeBadge = ({ of: { outcome, status } }: { readonly of: Pick<Attempt, "outcome" | "status"> }) => {
  const { text, tone } = outcomeOf(outcome)
  return (
    <Badge tone={tone}>
      {text}
      {status !== undefined && ` ${status}`}
    </Badge>
  )
}

const percent = (share: number) => `${Math.min(100, share * 100)}%`

const AttemptWords = ({ attempt }: { readonly attempt: Attempt }) => (
  <>
    <OutcomeBadge of={attempt} /> <code>{attempt.route}</code>
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
        stated cost <Usd amount={attempt.stated_cost_usd} />
      </span>
    )}
    {attempt.provider_request_id && (
      <span class="soft">
        at {attempt.provider} <code>{attempt.provider_request_id}</code>
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
        <b>{name}</b> {attempt === undefined ? detail && <Long text={detail} /> : <AttemptWords attempt={attempt} />}
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

/** Bars on one axis of time. */
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
        <p class="soft">Of attempts the log keeps how long each took: they are drawn one after the other.</p>
      )}
    </div>
  )
}
