import { usePages } from "../../api/usePages.ts"
import { usePolling } from "../../api/usePolling.ts"
import { Section } from "../../parts/Page.tsx"
import { PagedTable } from "../../parts/PagedTable.tsx"
import { link } from "../../Route.ts"
import type { PaymentRecord } from "./PaymentRecord.ts"
import { paymentColumns } from "./paymentColumns.ts"

const listed = 10
const everySeconds = 10

/** Nothing where no payment is on its way. */
export const OpenPayments = () => {
  const payments = usePages<PaymentRecord>("/payments", { status: "open" }, listed)
  usePolling(everySeconds, payments.refresh)
  return payments.rows.length === 0 ? null : (
    <Section title="Payments on their way" actions={<a href={link(["payments"])}>All payments</a>}>
      <PagedTable label="Payments on their way" pages={payments} rowKey={({ id }) => id} columns={paymentColumns} />
    </Section>
  )
}
