import type { ComponentChildren } from "preact"
import type { Payment } from "../../../services/payments/PaymentRecord.ts"
import { useResource } from "../../api/useResource.ts"
import { useRoute } from "../../BrowserState.ts"
import { formatUsd } from "../../format/Amount.ts"
import { link } from "../../Route.ts"
import { useMembership } from "../../SignedIn.ts"
import type { Organization } from "../organizations/records.ts"

type PaymentRecord = typeof Payment.Encoded

/** How the customer left the payment page. The return addresses of the gateway name it in `result`. */
type Result = "paid" | "cancelled"

/** Returns undefined if the customer does not come from the payment page. */
export const usePaymentResult = (): Result | undefined => {
  const { result } = useRoute().query
  return result === "paid" || result === "cancelled" ? result : undefined
}

/** Returns a text such as `$50.00 was added. Balance: $62.40`. The balance follows when it has loaded. */
const useAddedText = ({ amount_usd, org, status }: PaymentRecord): string => {
  const path = status === "paid" && org !== null ? `/organizations/${encodeURIComponent(org)}` : undefined
  const { data } = useResource<Organization>(path)
  return `${formatUsd(amount_usd ?? 0)} was added.${data === undefined ? "" : ` Balance: ${formatUsd(data.balance_usd)}`}`
}

const textOf = ({ status }: PaymentRecord, result: Result, added: string): string => {
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

const Links = ({ payment: { org, status } }: { readonly payment: PaymentRecord }) => {
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
export const PaymentReturn = ({
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
        <strong>{textOf(payment, result, added)}</strong>
      </p>
      {isProcessing && <p class="soft">This page updates automatically. A bank debit can take several days.</p>}
      {payment.status === "open" && result === "cancelled" && children}
      {!isProcessing && (
        <p>
          <Links payment={payment} />
        </p>
      )}
    </div>
  )
}
