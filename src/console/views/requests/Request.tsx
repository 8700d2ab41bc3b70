import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { countsByWhole } from "../../../services/requests/RequestCounts.ts"
import { useResource } from "../../api/useResource.ts"
import { formatCount, formatMarginShare, formatUsd, subtractUsd } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { WriteDialog } from "../../parts/Dialog.tsx"
import { Loaded } from "../../parts/Feedback.tsx"
import { TextField, textOf, UsdField } from "../../parts/Field.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Internal, Long, RefundBadge, shorten, Usd } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useMembership, useRole } from "../../Session.ts"
import { VideoFailure } from "../videos/Videos.tsx"
import { type LedgerEntry, type Price, type RequestDetail, statusOf } from "./Outcome.ts"
import { TimelineList } from "./TimelineList.tsx"

const Sum = ({
  amount,
  children,
  isStrong = false
}: {
  readonly children: ComponentChildren
  readonly amount: number | null
  readonly isStrong?: boolean
}) => (
  <tr class={isStrong ? "strong" : ""}>
    <th scope="row" colSpan={3}>
      {children}
    </th>
    <td class="amount">
      <Usd amount={amount} />
    </td>
  </tr>
)

const MarginShare = ({ cost_usd, margin_usd }: Price) => {
  const share = formatMarginShare(margin_usd, cost_usd)
  return share === null ? null : (
    <tr>
      <th scope="row" colSpan={3}>
        Margin of what was paid
      </th>
      <td class="amount">{share}</td>
    </tr>
  )
}

/** Usage times rate, and what became of the sum. */
const PriceTable = ({ price }: { readonly price: Price }) => (
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
          {price.parts.length > 0 && <Sum amount={price.price_usd}>Sum</Sum>}
          <Sum amount={price.hold_usd}>Held</Sum>
          <Sum amount={price.charge_usd} isStrong>
            Charged
          </Sum>
          {price.refunded_usd !== 0 && (
            <>
              <Sum amount={-price.refunded_usd}>Refunded</Sum>
              <Sum amount={price.paid_usd} isStrong>
                Paid
              </Sum>
            </>
          )}
          <Internal>
            {() => (
              <>
                <Sum amount={price.cost_usd}>Provider's cost{price.cost_usd === null && ", unknown"}</Sum>
                <Sum amount={price.margin_usd} isStrong>
                  Margin
                </Sum>
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

const Consequence = ({
  amount,
  request: { org, org_name, price }
}: {
  readonly request: RequestDetail
  readonly amount: number | undefined
}) => {
  if (amount === undefined) return <p class="soft">Enter how much of {formatUsd(price.paid_usd)} to give back.</p>
  const left = subtractUsd(price.paid_usd, amount)
  if (left < 0) return <p class="problem">Only {formatUsd(price.paid_usd)} are left to give back.</p>
  return (
    <p>
      The balance of <strong>{org_name ?? org}</strong> rises by <strong>{formatUsd(amount)}</strong>, which its key may
      spend again under its cap. It has then paid {formatUsd(left)} for this request
      {price.cost_usd !== null && `, whose provider's cost is ${formatUsd(price.cost_usd)}`}. The ledger keeps the
      refund and its note for good.
    </p>
  )
}

/** Gives back what the request was charged, or a part of it. */
const RefundDialog = ({
  onClose,
  onDone,
  request
}: {
  readonly request: RequestDetail
  readonly onDone: () => void
  readonly onClose: () => void
}) => {
  const whole = formatUsd(request.price.paid_usd).replace(/[$,]/g, "")
  const [text, setText] = useState(whole)
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
      done={`Refunded ${amount === undefined ? "it" : formatUsd(amount)}.`}
      onDone={onDone}
    >
      <div class="field" onInput={type}>
        <UsdField name="amount_usd" label="Amount in USD" value={whole} required />
        <TextField name="note" label="Note" hint="Why, for the ledger." required />
      </div>
      <Consequence request={request} amount={amount} />
    </WriteDialog>
  )
}

const notes: Readonly<Record<string, string>> = {
  usage_estimated: "usage estimated",
  hold_exceeded: "usage above the hold",
  usage_bounded: "impossible usage cut",
  hold_lost: "hold lost",
  replayed: "a kept result, repeated",
  cap_lowered: "output capped to the balance",
  charge_waived: "free: refused before any output",
  stop_reason_unknown: "ended for an unknown reason",
  usage_unexplained: "unexplained tokens in the usage",
  block_unknown: "a part of an unknown type",
  stated_cost_dropped: "impossible stated cost dropped"
}

const maxShown = 160

const filtered = (name: string, value: string | null) =>
  value && (
    <a href={link(["requests"], { [name]: value })}>
      <code>
        <bdi>{shorten(value, maxShown)}</bdi>
      </code>
    </a>
  )

/** Everything else that the log has of it. */
const RequestFacts = ({ request }: { readonly request: RequestDetail }) => {
  const isMember = useMembership() !== undefined
  const { at, first_byte_ms, hold, org, org_name, usage, video } = request
  return (
    <Facts isWide>
      <Fact name="At" at={at} />
      <Fact isInternal name="Organization">
        <a href={link(["organizations", org])}>
          <bdi>{org_name ?? org}</bdi>
        </a>
      </Fact>
      <Fact name="Key">
        <a href={isMember ? link(["keys"]) : link(["organizations", org])}>{request.key_name || request.key_id}</a>
      </Fact>
      <Fact name="Surface">{request.stream ? `${request.surface}, streamed` : request.surface}</Fact>
      <Fact name="Model">{filtered("model", request.model)}</Fact>
      <Fact isInternal name="Route" children={filtered("route", request.route)} />
      <Fact name="Tag">{filtered("tag", request.tag)}</Fact>
      <Fact name="End user">{filtered("user", request.end_user)}</Fact>
      <Fact isInternal name="Prompt cache" children={request.preference} />
      <Fact isInternal name="Provider's request id" code={request.provider_request_id} />
      {request.stated_cost_usd !== null && <Fact isInternal name="Stated cost" usd={request.stated_cost_usd} />}
      <Fact name="First byte">{first_byte_ms === null ? null : formatMillis(first_byte_ms)}</Fact>
      <Fact name="Took">{formatMillis(request.total_ms)}</Fact>
      {video && (
        <Fact name="Video">
          <a href={link(["videos", video.id])}>{video.status}</a>
        </Fact>
      )}
      {countsByWhole().flatMap(({ name, title }) =>
        usage?.[name] ? [<Fact key={name} name={title} children={formatCount(usage[name])} />] : []
      )}
      <Internal>
        {() =>
          request.notes.length > 0 && (
            <Fact name="Notes">{request.notes.map((note) => notes[note] ?? note).join(", ")}</Fact>
          )
        }
      </Internal>
      <Fact isInternal name="Address" code={request.address} />
      <Fact isInternal name="User agent" children={request.user_agent && <Long text={request.user_agent} />} />
      <Fact name="Request id">{filtered("search", request.request_id)}</Fact>
      <Fact name="Row" code={request.id} />
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
    empty="The ledger has no entry of it."
    rows={entries}
    columns={[
      { title: "At", kind: "time", value: ({ at }) => at },
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
      Its client used the same request id for <a href={link(["requests"], { search: request_id })}>others</a>:{" "}
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

/** The error in the answer. */
const Reason = ({ request: { error } }: { readonly request: RequestDetail }) =>
  error && (
    <div class="error-box">
      <Long text={error.message} />
      {error.hint && (
        <p>
          <Long text={error.hint} />
        </p>
      )}
      {error.param && (
        <p>
          Field: <code>{error.param}</code>
        </p>
      )}
    </div>
  )

export const Request = ({ id }: { readonly id: string }) => {
  const found = useResource<RequestDetail>(`/requests/${encodeURIComponent(id)}`)
  const mayWrite = useRole("write")
  const mayRefund = useMembership() === undefined && mayWrite
  const [isRefunding, setRefunding] = useState(false)
  const request = found.data
  const status = request && statusOf(request.status, request.code)
  return (
    <Page
      title={request?.request_id ?? "Request"}
      lead={
        status && (
          <>
            <Badge tone={status.tone}>{status.text}</Badge>{" "}
            <RefundBadge charged={request.price.charge_usd} refunded={request.price.refunded_usd} />
          </>
        )
      }
      actions={
        mayRefund &&
        request !== undefined &&
        request.price.paid_usd > 0 && <button onClick={() => setRefunding(true)}>Refund…</button>
      }
    >
      <Loaded resource={found}>
        {(request) => (
          <>
            <Others request={request} />
            <Reason request={request} />
            {request.video && <VideoFailure video={request.video} />}
            <div class="request">
              <Section title="What happened" isInternal>
                <TimelineList request={request} />
              </Section>
              <Section title="Why this price">
                <PriceTable price={request.price} />
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
        <RefundDialog request={request} onClose={() => setRefunding(false)} onDone={found.refresh} />
      )}
    </Page>
  )
}
