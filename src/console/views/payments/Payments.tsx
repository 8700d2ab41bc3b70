import { usePages } from "../../api/usePages.ts"
import { useRange } from "../../api/useRange.ts"
import { useRoute } from "../../CurrentRoute.ts"
import { type Filter, FilterBar } from "../../parts/FilterBar.tsx"
import { Page, Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { useMembership, usePaymentLimits } from "../../Session.ts"
import { AddCredits } from "./AddCredits.tsx"
import type { PaymentRecord } from "./PaymentRecord.ts"
import { paymentColumns, statuses } from "./paymentColumns.ts"

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
