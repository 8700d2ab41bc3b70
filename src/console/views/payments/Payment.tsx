import { usePolling } from "../../api/usePolling.ts"
import { useResource } from "../../api/useResource.ts"
import { ErrorBox, Loaded } from "../../parts/Feedback.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Badge, Fact, Facts, Internal } from "../../parts/Values.tsx"
import { link } from "../../Route.ts"
import { useMembership, useRole } from "../../Session.ts"
import type { PaymentDetail } from "./Payments.tsx"
import { statusOf, usePaymentPage } from "./Payments.tsx"

const everySeconds = 3

const Reversals = ({ reversals }: Pick<PaymentDetail, "reversals">) => (
  <Section title="Taken back">
    <Table
      label="Taken back"
      rows={reversals}
      rowKey={({ id }) => id}
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
  <Section title="Events">
    <Table
      label="Events"
      empty="No event told of it."
      rows={events}
      rowKey={({ id }) => id}
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
  <div class="panel">
    <Facts>
      <Fact name="Amount" usd={payment.amount_usd} />
      <Fact name="Paid" at={payment.paid_at} />
      <Fact name="Begun" at={payment.created_at} />
      {payment.reversed_usd > 0 && <Fact name="Taken back" usd={payment.reversed_usd} />}
      <Fact name="Organization">{payment.org_name ?? payment.org}</Fact>
      <Fact name="Payment" code={payment.id} />
      <Internal>
        {() => (
          <>
            {payment.org !== null && (
              <Fact name="Ledger">
                <a href={link(["ledger"], { organization: payment.org, kind: "top_up" })}>{payment.entry ?? "–"}</a>
              </Fact>
            )}
            <Fact name="Session" code={payment.session} />
            <Fact name="Payment intent" code={payment.payment_intent} />
          </>
        )}
      </Internal>
    </Facts>
  </div>
)

/** Its page may have been closed before anything was paid. */
const OpenPayment = ({ id }: Pick<PaymentDetail, "id">) => {
  const { error, isBusy, leave } = usePaymentPage(`/payments/${id}/checkout`)
  const isMember = useMembership() !== undefined
  const mayPay = useRole("write") && isMember
  return (
    <>
      <p class="calm">Its amount is added to the balance as soon as the money has arrived.</p>
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
export const Payment = ({ id }: { readonly id: string }) => {
  const found = useResource<PaymentDetail>(`/payments/${encodeURIComponent(id)}`)
  const payment = found.data
  const status = payment && statusOf(payment)
  usePolling(payment?.status === "open" ? everySeconds : undefined, found.refresh)
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
            <Internal>{() => <Events events={shown.events} />}</Internal>
          </>
        )}
      </Loaded>
    </Page>
  )
}
