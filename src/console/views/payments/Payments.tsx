import { useEffect, useState } from "preact/hooks"
import type { Payment, ShownPayment } from "../../../services/payments/Payment.ts"
import { usePages, usePolling, useResource } from "../../api/useResource.ts"
import { useWrite } from "../../api/useWrite.ts"
import { formatUsd } from "../../format/Amount.ts"
import { RefusedField } from "../../parts/Dialog.tsx"
import { ErrorBox, Loaded } from "../../parts/Feedback.tsx"
import { textOf, UsdField } from "../../parts/Field.tsx"
import { type Filter, FilterBar, useFilters } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, organizationColumn, PagedTable, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, Fact, Facts } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { type Session, useMembership, usePaymentLimits, useRole } from "../../Session.ts"

/** Amounts in USD, moments in Unix seconds; members get no field that is internal. */
type PaymentRecord = typeof Payment.Encoded
type PaymentDetail = typeof ShownPayment.Encoded

/** The status of each, and what it is called. */
const statuses: Readonly<Record<PaymentRecord["status"], Status>> = {
  open: { text: "waiting for payment", tone: "warn" },
  paid: { text: "paid", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  expired: { text: "expired", tone: "soft" },
  refused: { text: "not credited", tone: "bad" }
}

const statusOf = ({ amount_usd, disputed, reversed_usd, status }: PaymentRecord): Status => {
  if (disputed) return { text: "disputed", tone: "bad" }
  if (reversed_usd === 0) return statuses[status]
  return { text: reversed_usd === amount_usd ? "taken back" : "partly taken back", tone: "warn" }
}

const paymentColumns: ReadonlyArray<Column<PaymentRecord>> = [
  timeColumn("payments", ({ created_at }) => created_at),
  { title: "Status", kind: "status", value: statusOf },
  organizationColumn,
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  { title: "Taken back", kind: "usd", value: ({ reversed_usd }) => reversed_usd || null },
  { title: "Paid", kind: "time", value: ({ paid_at }) => paid_at },
  { title: "Problem", kind: "text", isInternal: true, value: ({ problem }) => problem },
  { title: "Id", kind: "code", isInternal: true, value: ({ id }) => id }
]

/** Leads to the page of a payment, which the endpoint at `path` answers with. */
const usePaymentPage = (path: string) => {
  const { error, isBusy, send } = useWrite<{ readonly url: string }>()
  const [isLeaving, setLeaving] = useState(false)
  useEffect(() => {
    // The browser's Back shows the page as it was left.
    const comeBack = ({ persisted }: PageTransitionEvent) => persisted && setLeaving(false)
    addEventListener("pageshow", comeBack)
    return () => removeEventListener("pageshow", comeBack)
  }, [])
  const leave = async (body?: unknown) => {
    const sent = await send("POST", path, body)
    if (sent === undefined) return
    setLeaving(true)
    location.assign(sent.answer.url)
  }
  return { error, isBusy: isBusy || isLeaving, leave }
}

const listed = 10
const listSeconds = 10

/** Pages that may still be paid, and payments that have not arrived; nothing where there are none. */
export const OpenPayments = () => {
  const payments = usePages<PaymentRecord>("/payments", { status: "open" }, listed)
  usePolling(listSeconds, payments.refresh)
  return payments.rows.length === 0 ? null : (
    <Section title="Open payments" actions={<a href={link(["payments"])}>All payments</a>}>
      <PagedTable label="Open payments" pages={payments} columns={paymentColumns} />
    </Section>
  )
}

const presets = [5, 10, 25, 50, 100, 250, 500, 1000]
const mostPresets = 5

const field = "amount_usd"

const enter = (form: HTMLFormElement | null, amount: number) => {
  const input = form?.elements.namedItem(field)
  if (input instanceof HTMLInputElement) input.value = String(amount)
}

/** Leads to the page where what is chosen is paid. */
const AmountForm = ({ maximum_usd, minimum_usd }: NonNullable<Session["payments"]>) => {
  const { error, isBusy, leave } = usePaymentPage("/checkout")
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    await leave({ [field]: textOf(new FormData(event.currentTarget), field) })
  }
  const refused = error?.param === field ? { param: field, message: error.message } : undefined
  return (
    <form class="panel amount-form" onSubmit={(event) => void submit(event)}>
      <div class="presets" role="group" aria-label="Amounts">
        {presets
          .filter((amount) => amount >= minimum_usd && amount <= maximum_usd)
          .slice(0, mostPresets)
          .map((amount) => (
            <button key={amount} type="button" onClick={({ currentTarget }) => enter(currentTarget.form, amount)}>
              ${amount}
            </button>
          ))}
      </div>
      <RefusedField.Provider value={refused}>
        <UsdField
          name={field}
          label="Amount in USD"
          hint={`From ${formatUsd(minimum_usd)} to ${formatUsd(maximum_usd)}.`}
          required
        />
      </RefusedField.Provider>
      {error && refused === undefined && <ErrorBox error={error} />}
      <div>
        <button class="primary" disabled={isBusy}>
          Go to payment
        </button>
      </div>
      <p class="soft">You pay at Stripe. The credits are added as soon as the money has arrived.</p>
    </form>
  )
}

const AddCredits = ({ limits }: { readonly limits: NonNullable<Session["payments"]> }) => (
  <Section title="Amount">
    {useRole("write") ? <AmountForm {...limits} /> : <p class="soft">Members with the role write can add credits.</p>}
  </Section>
)

const filters: ReadonlyArray<Filter> = [
  { kind: "range" },
  {
    kind: "select",
    name: "status",
    label: "Status",
    options: Object.entries(statuses).map(([status, { text }]) => [status, text] as const)
  },
  { kind: "text", name: "organization", label: "Organization", placeholder: "id or name", isInternal: true }
]

/** What was paid by the payment page; members add credits here. */
export const Payments = () => {
  const isMember = useMembership() !== undefined
  const limits = usePaymentLimits()
  const payments = usePages<PaymentRecord>("/payments", useFilters(filters))
  const list = (
    <>
      <FilterBar filters={filters} />
      <PagedTable label="Payments" pages={payments} empty="No payment matches." columns={paymentColumns} />
    </>
  )
  return (
    <Page title={isMember ? "Add credits" : "Payments"} actions={<button onClick={payments.refresh}>Refresh</button>}>
      {isMember && limits !== null && <AddCredits limits={limits} />}
      {isMember ? <Section title="Payments">{list}</Section> : list}
    </Page>
  )
}

const pollSeconds = 3

const Reversals = ({ reversals }: Pick<PaymentDetail, "reversals">) => (
  <Section title="Taken back">
    <Table
      label="Taken back"
      rows={reversals}
      columns={[
        { title: "Time", kind: "time", value: ({ created_at }) => created_at },
        { title: "Kind", kind: "text", value: ({ kind }) => kind },
        { title: "Status", kind: "text", value: ({ status }) => status.replaceAll("_", " ") },
        { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
        { title: "In another currency", kind: "text", value: ({ foreign_amount }) => foreign_amount ?? "" },
        { title: "Taken from the balance", kind: "usd", value: ({ taken_usd }) => taken_usd },
        { title: "Id", kind: "code", value: ({ id }) => id }
      ]}
    />
  </Section>
)

const Events = ({ events }: Pick<PaymentDetail, "events">) => (
  <Section title="Events" isInternal>
    <Table
      label="Events"
      empty="No event told of it."
      rows={events}
      columns={[
        { title: "Time", kind: "time", value: ({ created_at }) => created_at },
        { title: "Received", kind: "time", value: ({ received_at }) => received_at },
        { title: "Type", kind: "code", value: ({ type }) => type },
        { title: "Id", kind: "code", value: ({ id }) => id }
      ]}
    />
  </Section>
)

const Details = ({ payment }: { readonly payment: PaymentDetail }) => (
  <Facts>
    <Fact name="Amount" usd={payment.amount_usd} />
    <Fact name="Paid" at={payment.paid_at} />
    <Fact name="Begun" at={payment.created_at} />
    {payment.reversed_usd > 0 && <Fact name="Taken back" usd={payment.reversed_usd} />}
    <Fact name="Organization">{payment.org_name ?? payment.org}</Fact>
    <Fact name="Payment" code={payment.id} />
    {payment.org !== null && (
      <Fact isInternal name="Ledger">
        <a href={link(["ledger"], { organization: payment.org, kind: "top_up" })}>{payment.entry ?? "–"}</a>
      </Fact>
    )}
    <Fact isInternal name="Session" code={payment.session} />
    <Fact isInternal name="Payment intent" code={payment.payment_intent} />
  </Facts>
)

/** Its page may have been closed before anything was paid. */
const OpenPayment = ({ id }: Pick<PaymentDetail, "id">) => {
  const { error, isBusy, leave } = usePaymentPage(`/payments/${id}/checkout`)
  const isMember = useMembership() !== undefined
  const mayPay = useRole("write") && isMember
  return (
    <>
      <p class="soft">Its amount is added to the balance as soon as the money has arrived.</p>
      {error && <ErrorBox error={error} />}
      {mayPay && (
        <p>
          <button disabled={isBusy} onClick={() => void leave()}>
            Go to payment
          </button>
        </p>
      )}
    </>
  )
}

/** Where the payment page leads back to, and the receipt of what was paid. */
export const PaymentPage = ({ id }: { readonly id: string }) => {
  const found = useResource<PaymentDetail>(`/payments/${encodeURIComponent(id)}`)
  const payment = found.data
  const status = payment && statusOf(payment)
  usePolling(payment?.status === "open" ? pollSeconds : undefined, found.refresh)
  return (
    <Page
      title="Payment"
      lead={status && <Badge tone={status.tone}>{status.text}</Badge>}
      actions={payment?.paid_at && <button onClick={() => print()}>Print</button>}
    >
      <Loaded resource={found}>
        {(shown) => (
          <>
            {shown.status === "open" && <OpenPayment id={shown.id} />}
            {shown.problem && <p class="error-box">{shown.problem}</p>}
            <Details payment={shown} />
            {shown.reversals.length > 0 && <Reversals reversals={shown.reversals} />}
            <Events events={shown.events} />
          </>
        )}
      </Loaded>
    </Page>
  )
}
