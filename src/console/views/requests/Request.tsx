import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { countsByParent } from "../../../services/requests/RequestCounts.ts"
import { useResource } from "../../api/useResource.ts"
import { formatCount, formatMarginShare, formatUsd, subtractUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Dates.ts"
import { WriteDialog } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { TextField, textOf, UsdField } from "../../parts/Fields.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Internal, Long, RefundBadge, shorten, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useHasRole, useMembership } from "../../SignedIn.ts"
import { OutcomeBadge, VideoFailure } from "../videos/Videos.tsx"
import { type Attempt, type LedgerEntry, type Price, type RequestDetail, statusOf } from "./RequestRows.ts"
import { axisEnd, layOut, type TimelineRow, valueTicks } from "./Timeline.ts"

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

const TimelineBar = ({ end, row }: { readonly row: TimelineRow; readonly end: number }) => {
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
const TimelineList = ({ request }: { readonly request: RequestDetail }) => {
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
          <TimelineBar key={index} row={row} end={end} />
        ))}
      </ol>
      {rows.filter(({ attempt }) => attempt !== undefined).length > 1 && (
        <p class="soft">The log keeps only the duration of each attempt, so attempts are drawn one after another.</p>
      )}
    </div>
  )
}

const SumRow = ({
  amount,
  children,
  isStrong = false,
  none
}: {
  readonly children: ComponentChildren
  readonly amount: number | null
  readonly isStrong?: boolean
  /** The text of a missing amount. */
  readonly none?: string
}) => (
  <tr class={isStrong ? "strong" : ""}>
    <th scope="row" colSpan={3}>
      {children}
    </th>
    <td class="amount">
      <Usd amount={amount} none={none} />
    </td>
  </tr>
)

const MarginShare = ({ cost_usd, margin_usd }: Price) => {
  const share = formatMarginShare(margin_usd, cost_usd)
  return share === null ? null : (
    <tr>
      <th scope="row" colSpan={3}>
        Margin %
      </th>
      <td class="amount">{share}</td>
    </tr>
  )
}

/** Usage times rate, the reserved and charged amounts, and refunds. */
const PriceTable = ({ request: { attempts, price } }: { readonly request: RequestDetail }) => (
  <div class="panel price">
    <Internal>{() => <p>{price.why}</p>}</Internal>
    <div class="scroll" role="region" aria-label="Price" tabIndex={0}>
      <table>
        {price.parts.length > 0 && (
          <>
            <thead>
              <tr>
                <th scope="col">Usage</th>
                <th scope="col" class="amount">
                  Quantity
                </th>
                <th scope="col" class="amount">
                  Rate
                </th>
                <th scope="col" class="amount">
                  Amount
                </th>
              </tr>
            </thead>
            <tbody>
              {price.parts.map(({ amount_usd, per, quantity, rate_usd, unit }) => (
                <tr key={unit}>
                  <td>{unit}</td>
                  <td class="amount">{formatCount(quantity)}</td>
                  <td class="amount rate">
                    <Usd amount={rate_usd} /> <small class="soft">per {per}</small>
                  </td>
                  <td class="amount">
                    <Usd amount={amount_usd} precision={12} />
                  </td>
                </tr>
              ))}
            </tbody>
          </>
        )}
        <tbody class="sums">
          {price.parts.length > 0 && <SumRow amount={price.price_usd}>Subtotal</SumRow>}
          <SumRow amount={price.hold_usd} none="nothing">
            Reserved
          </SumRow>
          <SumRow amount={price.charge_usd} isStrong>
            Charged
          </SumRow>
          {price.refunded_usd !== 0 && (
            <>
              <SumRow amount={-price.refunded_usd}>Refunded</SumRow>
              <SumRow amount={price.paid_usd} isStrong>
                Net charge
              </SumRow>
            </>
          )}
          <Internal>
            {() => (
              <>
                <SumRow
                  amount={price.cost_usd}
                  none={attempts.length === 0 ? "none, no provider was called" : "unknown"}
                >
                  Provider cost
                </SumRow>
                <SumRow amount={price.margin_usd} isStrong none={attempts.length === 0 ? "none" : "unknown"}>
                  Margin
                </SumRow>
                <MarginShare {...price} />
              </>
            )}
          </Internal>
        </tbody>
      </table>
    </div>
  </div>
)

const amountOf = (text: string): number | undefined => {
  const amount = text.trim() === "" ? Number.NaN : Number(text)
  return amount > 0 ? amount : undefined
}

const RefundSummary = ({
  amount,
  request: { org, org_name, price }
}: {
  readonly request: RequestDetail
  readonly amount: number | undefined
}) => {
  if (amount === undefined) return <p class="soft">Enter an amount up to {formatUsd(price.paid_usd)}.</p>
  const remaining = subtractUsd(price.paid_usd, amount)
  if (remaining < 0) return <p class="problem">You can refund at most {formatUsd(price.paid_usd)}.</p>
  return (
    <p>
      This adds <strong>{formatUsd(amount)}</strong> to the balance of <strong>{org_name ?? org}</strong> and lowers the
      key's spend. The net charge of this request is then {formatUsd(remaining)}.
      {price.cost_usd !== null && ` The provider cost is ${formatUsd(price.cost_usd)}.`} The refund and its note stay in
      the ledger permanently.
    </p>
  )
}

const RefundDialog = ({
  onClose,
  onDone,
  request
}: {
  readonly request: RequestDetail
  readonly onDone: () => void
  readonly onClose: () => void
}) => {
  const maxAmount = formatUsd(request.price.paid_usd).replace(/[$,]/g, "")
  const [text, setText] = useState(maxAmount)
  const amount = amountOf(text)
  const type = ({ target }: Event) => {
    if (target instanceof HTMLInputElement && target.name === "amount_usd") setText(target.value)
  }
  return (
    <WriteDialog
      title="Refund this request"
      action={amount === undefined ? "Refund" : `Refund ${formatUsd(amount)}`}
      path="/credits/refunds"
      body={(form) => ({
        request_id: request.id,
        amount_usd: textOf(form, "amount_usd"),
        note: textOf(form, "note")
      })}
      onClose={onClose}
      done={amount === undefined ? "Refund recorded." : `Refunded ${formatUsd(amount)}.`}
      onDone={onDone}
    >
      <div class="field" onInput={type}>
        <UsdField name="amount_usd" label="Amount (USD)" value={maxAmount} required />
        <TextField name="note" label="Note" hint="The reason, recorded in the ledger." required />
      </div>
      <RefundSummary request={request} amount={amount} />
    </WriteDialog>
  )
}

const notes: Readonly<Record<string, string>> = {
  usage_estimated: "usage estimated",
  hold_exceeded: "usage cost more than the reserved amount; only the reserved amount was charged",
  usage_bounded: "implausible token count capped",
  hold_lost: "hold released before settlement",
  replayed: "idempotent replay",
  cap_lowered: "output limit reduced to fit the balance",
  charge_waived: "not charged: refused before any output",
  stop_reason_unknown: "unknown stop reason",
  usage_unexplained: "token total exceeds its itemized parts",
  block_unknown: "unknown content block",
  stated_cost_dropped: "invalid provider-reported cost ignored"
}

const maxLinkLength = 160

const linkToFilter = (name: string, value: string | null) =>
  value && (
    <a href={link(["requests"], { [name]: value })}>
      <code>
        <bdi>{shorten(value, maxLinkLength)}</bdi>
      </code>
    </a>
  )

const RequestFacts = ({ request }: { readonly request: RequestDetail }) => {
  const isMember = useMembership() !== undefined
  const { at, first_byte_ms, hold, org, org_name, usage, video } = request
  return (
    <Facts isWide>
      <Fact name="Time" at={at} />
      <Fact isInternal name="Organization">
        <a href={link(["organizations", org])}>
          <bdi>{org_name ?? org}</bdi>
        </a>
      </Fact>
      <Fact name="Key">
        <a href={isMember ? link(["keys"]) : link(["organizations", org])}>{request.key_name || request.key_id}</a>
      </Fact>
      <Fact name="Endpoint type">{request.stream ? `${request.surface}, streaming` : request.surface}</Fact>
      <Fact name="Model">{linkToFilter("model", request.model)}</Fact>
      <Fact isInternal name="Route" children={linkToFilter("route", request.route)} />
      <Fact name="Tag">{linkToFilter("tag", request.tag)}</Fact>
      <Fact name="End user">{linkToFilter("user", request.end_user)}</Fact>
      <Fact isInternal name="Prompt cache" children={request.preference} />
      <Fact isInternal name="Provider request ID" code={request.provider_request_id} />
      {request.stated_cost_usd !== null && (
        <Fact isInternal name="Provider-reported cost" usd={request.stated_cost_usd} />
      )}
      <Fact name="Time to first byte">{first_byte_ms === null ? null : formatMillis(first_byte_ms)}</Fact>
      <Fact name="Duration">{formatMillis(request.total_ms)}</Fact>
      {video && (
        <Fact name="Video">
          <a href={link(["videos", video.id])}>{video.status}</a>
        </Fact>
      )}
      {countsByParent().flatMap(({ name, title }) =>
        usage?.[name] ? [<Fact key={name} name={title} children={formatCount(usage[name])} />] : []
      )}
      <Internal>
        {() =>
          request.notes.length > 0 && (
            <Fact name="Notes">{request.notes.map((note) => notes[note] ?? note).join(", ")}</Fact>
          )
        }
      </Internal>
      <Fact isInternal name="IP address" code={request.address} />
      <Fact isInternal name="User agent" children={request.user_agent && <Long text={request.user_agent} />} />
      <Fact name="Request ID">{linkToFilter("search", request.request_id)}</Fact>
      <Fact name="Log record ID" code={request.id} />
      {hold && (
        <Fact name="Hold">
          {hold.state} <code>{hold.id}</code>
        </Fact>
      )}
    </Facts>
  )
}

const Entries = ({ entries }: { readonly entries: ReadonlyArray<LedgerEntry> }) => (
  <Table
    label="Ledger entries"
    empty="No ledger entries."
    rows={entries}
    columns={[
      { title: "Time", kind: "time", value: ({ at }) => at },
      { title: "Kind", kind: "text", value: ({ kind }) => kind },
      { title: "Note", kind: "text", value: ({ note }) => note },
      { title: "Reference", kind: "code", value: ({ ref }) => ref },
      { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd }
    ]}
  />
)

const Others = ({ request: { others = [], request_id } }: { readonly request: RequestDetail }) =>
  others.length === 0 ? null : (
    <p class="soft">
      The client also sent this request ID with <a href={link(["requests"], { search: request_id })}>other requests</a>:{" "}
      {others.slice(0, 5).map((id, index) => (
        <>
          {index > 0 && ", "}
          <a key={id} href={link(["requests", id])}>
            <code>{id}</code>
          </a>
        </>
      ))}
      {others.length > 5 && "…"}
    </p>
  )

const Reason = ({ request: { error } }: { readonly request: RequestDetail }) =>
  error && (
    <div class="error-box lines">
      <p>
        <Long text={error.message} />
      </p>
      {error.hint && (
        <p>
          <Long text={error.hint} />
        </p>
      )}
      {error.param && (
        <p>
          Parameter: <code>{error.param}</code>
        </p>
      )}
    </div>
  )

export const Request = ({ id }: { readonly id: string }) => {
  const resource = useResource<RequestDetail>(`/requests/${encodeURIComponent(id)}`)
  const canWrite = useHasRole("write")
  const canRefund = useMembership() === undefined && canWrite
  const [isRefunding, setRefunding] = useState(false)
  const request = resource.data
  const status = request && statusOf(request.status, request.code, request.video_status)
  return (
    <Page
      title="Request"
      recordId={request?.request_id}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge>{" "}
            <RefundBadge charge={request.price.charge_usd} refund={request.price.refunded_usd} />
          </>
        )
      }
      actions={
        canRefund &&
        request !== undefined &&
        request.price.paid_usd > 0 && <button onClick={() => setRefunding(true)}>Refund…</button>
      }
    >
      <Loaded resource={resource}>
        {(request) => (
          <>
            <Others request={request} />
            <Reason request={request} />
            {request.video && <VideoFailure video={request.video} />}
            <div class="request">
              <Section title="Timeline" isInternal>
                <TimelineList request={request} />
              </Section>
              <Section title="Price breakdown">
                <PriceTable request={request} />
              </Section>
            </div>
            <Section title="Details">
              <RequestFacts request={request} />
            </Section>
            <Section title="Ledger" isInternal>
              <Entries entries={request.entries} />
            </Section>
          </>
        )}
      </Loaded>
      {isRefunding && request !== undefined && (
        <RefundDialog request={request} onClose={() => setRefunding(false)} onDone={resource.refresh} />
      )}
    </Page>
  )
}
