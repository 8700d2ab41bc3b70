import { usePages } from "../../api/usePages.ts"
import { usePolling } from "../../api/usePolling.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { link } from "../../Route.ts"
import type { PaymentRecord } from "./PaymentRecord.ts"
import { paymentColumns } from "./paymentColumns.ts"

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
