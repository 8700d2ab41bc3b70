import { useState } from "preact/hooks"
import { formatUsd } from "../../format/Amount.ts"
import { subtractUsd } from "../../format/Subtraction.ts"
import { TextField, textOf, UsdField } from "../../parts/Field.tsx"
import { WriteDialog } from "../../parts/WriteDialog.tsx"
import type { RequestDetail } from "./RequestRecord.ts"

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
export const RefundDialog = ({
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
