import { useEffect, useState } from "preact/hooks"
import type { Payment, ShownPayment } from "../../../services/payments/Payment.ts"
import { usePages } from "../../api/usePages.ts"
import { usePolling } from "../../api/usePolling.ts"
import { useRange } from "../../api/useRange.ts"
import { useWrite } from "../../api/useWrite.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { formatUsd } from "../../format/Amount.ts"
import { organizationColumn, timeColumn } from "../../parts/columns.tsx"
import { RefusedField } from "../../parts/Dialog.tsx"
import { ErrorBox } from "../../parts/Feedback.tsx"
import { textOf, UsdField } from "../../parts/Field.tsx"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import type { Column } from "../../parts/Table.tsx"
import { PagedTable } from "../../parts/Table.tsx"
import { link } from "../../Route.ts"
import { type Session, useMembership, usePaymentLimits, useRole } from "../../Session.ts"

/** Amounts in USD, moments in Unix seconds; members get no field that is internal. */
type PaymentRecord = typeof Payment.Encoded
export type PaymentDetail = typeof ShownPayment.Encoded

/** The status of each, and what it is called. */
const statuses: Readonly<Record<PaymentRecord["status"], Status>> = {
  open: { text: "waiting for payment", tone: "warn" },
  paid: { text: "paid", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  expired: { text: "expired", tone: "soft" },
  refused: { text: "not credited", tone: "bad" }
}

export const statusOf = ({ amount_usd, disputed, reversed_usd, status }: PaymentRecord): Status => {
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
export const usePaymentPage = (path: string) => {
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
const everySeconds = 10

/** Pages that may still be paid, and payments that have not arrived; nothing where there are none. */
export const OpenPayments = () => {
  const payments = usePages<PaymentRecord>("/payments", { status: "open" }, listed)
  usePolling(everySeconds, payments.refresh)
  return payments.rows.length === 0 ? null : (
    <Section title="Open payments" actions={<a href={link(["payments"])}>All payments</a>}>
      <PagedTable label="Open payments" pages={payments} rowKey={({ id }) => id} columns={paymentColumns} />
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
  const { organization, status } = useRoute().query
  const isMember = useMembership() !== undefined
  const limits = usePaymentLimits()
  const payments = usePages<PaymentRecord>("/payments", { organization, status, ...useRange() })
  const list = (
    <>
      <FilterBar filters={filters} />
      <PagedTable
        label="Payments"
        pages={payments}
        empty="No payment matches."
        rowKey={({ id }) => id}
        columns={paymentColumns}
      />
    </>
  )
  return (
    <Page title={isMember ? "Add credits" : "Payments"} actions={<button onClick={payments.refresh}>Refresh</button>}>
      {isMember && limits !== null && <AddCredits limits={limits} />}
      {isMember ? <Section title="Payments">{list}</Section> : list}
    </Page>
  )
}
