import type { ComponentChildren } from "preact"
import { currencyText } from "../../../domain/Documents.ts"
import type { Receipt as ReceiptRecord } from "../../../services/payments/PaymentRecord.ts"
import type { SellerRecord } from "../../../services/statements/Seller.ts"
import { subtractUsd } from "../../format/Amount.ts"
import { formatUtc } from "../../format/Dates.ts"
import { Section } from "../../parts/Page.tsx"
import type { Status } from "../../parts/Status.ts"
import { Table } from "../../parts/Table.tsx"
import { Fact, Internal } from "../../parts/Values.tsx"

interface Customer {
  readonly id: string
  readonly name: string
}

const SellerLines = ({ address, name, tax_id }: typeof SellerRecord.Encoded) => (
  <>
    <strong>
      <bdi>{name}</bdi>
    </strong>
    {address?.split("\n").map((line) => (
      <bdi key={line}>{line}</bdi>
    ))}
    {tax_id !== undefined && (
      <span>
        Tax id <bdi>{tax_id}</bdi>
      </span>
    )}
  </>
)

/** The seller, the customer and the facts of a statement or receipt. Operators see how to set the seller. */
export const DocumentHead = ({
  children,
  customer,
  seller
}: {
  readonly customer: Customer
  readonly seller: typeof SellerRecord.Encoded | undefined
  /** Facts. */
  readonly children: ComponentChildren
}) => (
  <div class="panel document-head">
    {seller === undefined ? (
      <Internal>
        {() => (
          <div class="soft screen-only">
            <p>
              To show your company here, set <code>SELLER_NAME</code>, <code>SELLER_ADDRESS</code> and{" "}
              <code>SELLER_TAX_ID</code>, and restart the gateway.
            </p>
          </div>
        )}
      </Internal>
    ) : (
      <section aria-label="Seller">
        <h2>Seller</h2>
        <SellerLines {...seller} />
      </section>
    )}
    <section aria-label="Customer">
      <h2>Customer</h2>
      <strong>
        <bdi>{customer.name}</bdi>
      </strong>
      <code>{customer.id}</code>
    </section>
    <dl class="facts">{children}</dl>
  </div>
)

export type ReceiptDetail = typeof ReceiptRecord.Encoded

const methods: Readonly<Record<ReceiptDetail["method"], string>> = {
  stripe: "Stripe",
  entered: "Entered by the seller"
}

/** The state of credits that were paid, or that the seller entered, perhaps without a payment. */
export const paidStatusOf = (payment: {
  readonly amount_usd: number | null
  readonly disputed: boolean
  readonly reversed_usd: number
  readonly method?: ReceiptDetail["method"]
}): Status => {
  const { amount_usd, disputed, method, reversed_usd } = payment
  if (disputed) return { text: "disputed", tone: "bad" }
  if (reversed_usd === 0) return { text: method === "entered" ? "credited" : "paid", tone: "good" }
  return { text: reversed_usd === amount_usd ? "refunded" : "partially refunded", tone: "warn" }
}

export const Reversals = ({ reversals }: Pick<ReceiptDetail, "reversals">) => (
  <Section title="Refunds and disputes">
    <Table
      label="Refunds and disputes"
      rows={reversals}
      columns={[
        { title: "Time (UTC)", kind: "text", value: ({ created_at }) => formatUtc(created_at) },
        { title: "Kind", kind: "text", value: ({ kind }) => kind },
        { title: "Status", kind: "text", value: ({ status }) => status.replaceAll("_", " ") },
        { title: "Amount", kind: "usd", value: ({ amount_usd }) => amount_usd },
        { title: "Original currency", kind: "text", value: ({ foreign_amount }) => foreign_amount ?? "" },
        { title: "Deducted from balance", kind: "usd", value: ({ taken_usd }) => taken_usd },
        { title: "ID", kind: "code", value: ({ id }) => id }
      ]}
    />
  </Section>
)

/** Proof of a payment or of entered credits, on one printed page. */
export const Receipt = ({ receipt }: { readonly receipt: ReceiptDetail }) => {
  const { amount_usd, method, number, org, org_name, paid_at, payment, reference, reversals, reversed_usd } = receipt
  return (
    <>
      <DocumentHead seller={receipt.seller} customer={{ id: org, name: org_name }}>
        <Fact name="Receipt number" code={number} />
        <Fact name={method === "entered" ? "Credited at" : "Paid at"}>{formatUtc(paid_at)} UTC</Fact>
        <Fact name="Method">{methods[method]}</Fact>
        {reference !== null && <Fact name="Reference" code={reference} />}
        {payment !== null && <Fact name="Payment" code={payment} />}
        <Fact name="Currency">{currencyText}</Fact>
      </DocumentHead>
      <Section title="Amounts">
        <Table
          label="Amounts"
          rows={[
            { title: "Credits", amount: amount_usd },
            ...(reversed_usd === 0 ? [] : [{ title: "Refunded or disputed", amount: -reversed_usd }])
          ]}
          total={{ title: "Total", amount: subtractUsd(amount_usd, reversed_usd) }}
          rowKey={({ title }) => title}
          columns={[
            { title: "Description", kind: "text", value: ({ title }) => title },
            { title: "Amount", kind: "usd", value: ({ amount }) => amount }
          ]}
        />
      </Section>
      {reversals.length > 0 && <Reversals reversals={reversals} />}
    </>
  )
}
