import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import type { Payment, PublicPayment } from "../../../services/payments/PaymentRecord.ts"
import { usePages, usePolling, useResource, useWrite } from "../../api/useResource.ts"
import { useRoute } from "../../BrowserState.ts"
import { formatUsd } from "../../format/Amount.ts"
import { InvalidField } from "../../parts/Dialog.tsx"
import { ErrorBox, Loaded } from "../../parts/Feedback.tsx"
import { textOf, UsdField } from "../../parts/Fields.tsx"
import { type Filter, FilterBar, useFilters } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { type Column, organizationColumn, PagedTable, Table, timeColumn } from "../../parts/Table.tsx"
import { Badge, Fact, Facts } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { type Session, useHasRole, useMembership, usePaymentLimits } from "../../SignedIn.ts"
import type { Organization } from "../organizations/records.ts"
import { paidStatusOf, Receipt, type ReceiptDetail, Reversals } from "./Receipt.tsx"

/** Amounts in USD, times in Unix seconds. Members get no internal fields. */
type PaymentRecord = typeof Payment.Encoded
type PaymentDetail = typeof PublicPayment.Encoded

const statuses: Readonly<Record<PaymentRecord["status"], Status>> = {
  open: { text: "waiting for payment", tone: "warn" },
  paid: { text: "paid", tone: "good" },
  failed: { text: "failed", tone: "bad" },
  expired: { text: "expired", tone: "soft" },
  refused: { text: "not credited", tone: "bad" }
}

const statusOf = (payment: PaymentRecord): Status =>
  payment.disputed || payment.reversed_usd > 0 ? paidStatusOf(payment) : statuses[payment.status]

const paymentColumns: ReadonlyArray<Column<PaymentRecord>> = [
  timeColumn("payments", ({ created_at }) => created_at),
  { title: "Status", kind: "status", value: statusOf },
  organizationColumn,
  { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
  { title: "Refunded or disputed", kind: "usd", value: ({ reversed_usd }) => reversed_usd || null },
  { title: "Paid at", kind: "time", value: ({ paid_at }) => paid_at },
  { title: "Problem", kind: "text", isInternal: true, value: ({ problem }) => problem },
  { title: "ID", kind: "code", isInternal: true, value: ({ id }) => id }
]

/** Opens the payment page, whose URL the endpoint at `path` returns. */
const usePaymentPage = (path: string) => {
  const { error, isBusy, send } = useWrite<{ readonly url: string }>()
  const [isLeaving, setLeaving] = useState(false)
  useEffect(() => {
    // The browser's Back button restores the page as it was.
    const handlePageShow = ({ persisted }: PageTransitionEvent) => persisted && setLeaving(false)
    addEventListener("pageshow", handlePageShow)
    return () => removeEventListener("pageshow", handlePageShow)
  }, [])
  const openPaymentPage = async (body?: unknown) => {
    const sent = await send("POST", path, body)
    if (sent === undefined) return
    setLeaving(true)
    location.assign(sent.answer.url)
  }
  return { error, isBusy: isBusy || isLeaving, openPaymentPage }
}

const pageSize = 10
const listSeconds = 10

/** Lists unfinished payments. Renders nothing if there are none. */
export const OpenPayments = () => {
  const payments = usePages<PaymentRecord>("/payments", { status: "open" }, pageSize)
  usePolling(listSeconds, payments.refresh)
  return payments.rows.length === 0 ? null : (
    <Section title="Open payments" actions={<a href={link(["payments"])}>All payments</a>}>
      <PagedTable label="Open payments" pages={payments} columns={paymentColumns} />
    </Section>
  )
}

const presets = [5, 10, 25, 50, 100, 250, 500, 1000]
const maxPresets = 5

const field = "amount_usd"

const enterAmount = (form: HTMLFormElement | null, amount: number) => {
  const input = form?.elements.namedItem(field)
  if (input instanceof HTMLInputElement) input.value = String(amount)
}

/** Opens the payment page for the chosen amount. */
const AmountForm = ({ maximum_usd, minimum_usd }: NonNullable<Session["payments"]>) => {
  const { error, isBusy, openPaymentPage } = usePaymentPage("/checkout")
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    await openPaymentPage({ [field]: textOf(new FormData(event.currentTarget), field) })
  }
  const invalid = error?.param === field ? { param: field, message: error.message } : undefined
  return (
    <form class="panel amount-form" onSubmit={(event) => void submit(event)}>
      <div class="presets" role="group" aria-label="Amounts">
        {presets
          .filter((amount) => amount >= minimum_usd && amount <= maximum_usd)
          .slice(0, maxPresets)
          .map((amount) => (
            <button key={amount} type="button" onClick={({ currentTarget }) => enterAmount(currentTarget.form, amount)}>
              ${amount}
            </button>
          ))}
      </div>
      <InvalidField.Provider value={invalid}>
        <UsdField
          name={field}
          label="Amount (USD)"
          hint={`From ${formatUsd(minimum_usd)} to ${formatUsd(maximum_usd)}.`}
          required
        />
      </InvalidField.Provider>
      {error && invalid === undefined && <ErrorBox error={error} />}
      <div>
        <button class="primary" disabled={isBusy}>
          Continue to payment
        </button>
      </div>
      <p class="soft">You pay on Stripe. Credits are added when the payment arrives.</p>
    </form>
  )
}

const AddCredits = ({ limits }: { readonly limits: NonNullable<Session["payments"]> }) => (
  <Section title="Amount">
    {useHasRole("write") ? <AmountForm {...limits} /> : <p class="soft">To add credits, you need the write role.</p>}
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
  { kind: "text", name: "organization", label: "Organization", placeholder: "Name or ID", isInternal: true }
]

/** The list of Stripe payments. Members also add credits here. */
export const Payments = () => {
  const isMember = useMembership() !== undefined
  const limits = usePaymentLimits()
  const payments = usePages<PaymentRecord>("/payments", useFilters(filters))
  const list = (
    <>
      <FilterBar filters={filters} />
      <PagedTable label="Payments" pages={payments} nouns="payments" columns={paymentColumns} />
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

const Events = ({ events }: Pick<PaymentDetail, "events">) => (
  <Section title="Events" isInternal>
    <Table
      label="Events"
      empty="No events."
      rows={events}
      columns={[
        { title: "Time", kind: "time", value: ({ created_at }) => created_at },
        { title: "Received", kind: "time", value: ({ received_at }) => received_at },
        { title: "Type", kind: "code", value: ({ type }) => type },
        { title: "ID", kind: "code", value: ({ id }) => id }
      ]}
    />
  </Section>
)

/** Facts that are not on the receipt. */
const InternalFacts = ({ payment }: { readonly payment: PaymentDetail }) => (
  <>
    {payment.org !== null && (
      <Fact isInternal name="Ledger">
        <a href={link(["ledger"], { organization: payment.org, kind: "top_up" })}>{payment.entry ?? "–"}</a>
      </Fact>
    )}
    <Fact isInternal name="Checkout session" code={payment.session} />
    <Fact isInternal name="Payment intent" code={payment.payment_intent} />
  </>
)

const Details = ({ payment }: { readonly payment: PaymentDetail }) => (
  <Facts>
    <Fact name="Amount" usd={payment.amount_usd} />
    <Fact name="Paid at" at={payment.paid_at} />
    <Fact name="Created" at={payment.created_at} />
    {payment.reversed_usd > 0 && <Fact name="Refunded or disputed" usd={payment.reversed_usd} />}
    <Fact name="Organization">{payment.org_name ?? payment.org}</Fact>
    <Fact name="Payment" code={payment.id} />
    <InternalFacts payment={payment} />
  </Facts>
)

/** The receipt, and below it what only operators see on a screen. */
const PaidPayment = ({ payment, receipt }: { readonly payment: PaymentDetail; readonly receipt: ReceiptDetail }) => (
  <>
    <Receipt receipt={receipt} />
    <div class="screen-only">
      <Section title="Payment" isInternal>
        <Facts>
          <Fact name="Created" at={payment.created_at} />
          <InternalFacts payment={payment} />
        </Facts>
      </Section>
      <Events events={payment.events} />
    </div>
  </>
)

/** Opens the payment page again, because the customer may have closed it before paying. */
const ContinueButton = ({ id, label }: Pick<PaymentDetail, "id"> & { readonly label: string }) => {
  const { error, isBusy, openPaymentPage } = usePaymentPage(`/payments/${id}/checkout`)
  const isMember = useMembership() !== undefined
  const canPay = useHasRole("write") && isMember
  return (
    <>
      {error && <ErrorBox error={error} />}
      {canPay && (
        <p>
          <button disabled={isBusy} onClick={() => void openPaymentPage()}>
            {label}
          </button>
        </p>
      )}
    </>
  )
}

const OpenPayment = ({ id }: Pick<PaymentDetail, "id">) => (
  <>
    <p class="soft">The credits are added when the payment arrives.</p>
    <ContinueButton id={id} label="Continue to payment" />
  </>
)

/** How the customer left the payment page. The return addresses of the gateway name it in `result`. */
type Result = "paid" | "cancelled"

/** Returns undefined if the customer does not come from the payment page. */
const usePaymentResult = (): Result | undefined => {
  const { result } = useRoute().query
  return result === "paid" || result === "cancelled" ? result : undefined
}

/** Returns a text such as `$50.00 was added. Balance: $62.40`. The balance follows when it has loaded. */
const useAddedText = ({ amount_usd, org, status }: PaymentRecord): string => {
  const path = status === "paid" && org !== null ? `/organizations/${encodeURIComponent(org)}` : undefined
  const { data } = useResource<Organization>(path)
  return `${formatUsd(amount_usd ?? 0)} was added.${data === undefined ? "" : ` Balance: ${formatUsd(data.balance_usd)}`}`
}

const resultText = ({ status }: PaymentRecord, result: Result, added: string): string => {
  switch (status) {
    case "paid":
      return added
    case "refused":
      return "Your payment arrived but was not credited. Contact the operator of this gateway."
    case "failed":
      return "The payment failed. Nothing was added."
    case "open":
      return result === "paid" ? "Your payment is being processed." : "No payment was made."
    default:
      return "No payment was made."
  }
}

const ReturnLinks = ({ payment: { org, status } }: { readonly payment: PaymentRecord }) => {
  const isMember = useMembership() !== undefined
  if (!isMember) return org === null ? null : <a href={link(["organizations", org])}>Organization</a>
  if (status !== "paid" && status !== "refused") return <a href={link(["payments"])}>Choose another amount</a>
  return (
    <>
      <a href={link([])}>Overview</a> · <a href={link(["keys"])}>Keys</a> ·{" "}
      <a href={link(["playground"])}>Playground</a>
    </>
  )
}

/** Shows the result of a payment after the customer returns from the payment page. `children` is the button to try again. */
const PaymentReturn = ({
  children,
  payment,
  result
}: {
  readonly payment: PaymentRecord
  readonly result: Result
  readonly children: ComponentChildren
}) => {
  const added = useAddedText(payment)
  const isProcessing = payment.status === "open" && result === "paid"
  return (
    <div class="panel amount-form">
      <p role="status">
        <strong>{resultText(payment, result, added)}</strong>
      </p>
      {isProcessing && <p class="soft">This page updates automatically. A bank debit can take several days.</p>}
      {payment.status === "open" && result === "cancelled" && children}
      {!isProcessing && (
        <p>
          <ReturnLinks payment={payment} />
        </p>
      )}
    </div>
  )
}

/** One payment: its status, and its receipt once it is paid. Stripe's payment page returns the customer here. */
export const PaymentPage = ({ id }: { readonly id: string }) => {
  const resource = useResource<PaymentDetail>(`/payments/${encodeURIComponent(id)}`)
  const payment = resource.data
  const status = payment && statusOf(payment)
  const result = usePaymentResult()
  usePolling(payment?.status === "open" ? pollSeconds : undefined, resource.refresh)
  return (
    <Page
      title={payment?.receipt ? "Receipt" : "Payment"}
      lead={status && <Badge tone={status.tone}>{status.text}</Badge>}
      actions={payment?.receipt && <button onClick={() => print()}>Print</button>}
    >
      <Loaded resource={resource}>
        {(payment) => (
          <>
            {result === undefined ? (
              payment.status === "open" && <OpenPayment id={payment.id} />
            ) : (
              <PaymentReturn payment={payment} result={result}>
                <ContinueButton id={payment.id} label="Try again" />
              </PaymentReturn>
            )}
            {payment.problem && <p class="error-box">{payment.problem}</p>}
            {payment.receipt ? (
              <PaidPayment payment={payment} receipt={payment.receipt} />
            ) : (
              <>
                <Details payment={payment} />
                {payment.reversals.length > 0 && <Reversals reversals={payment.reversals} />}
                <Events events={payment.events} />
              </>
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}
