import { formatUsd } from "../../format/Amount.ts"
import { ErrorBox } from "../../parts/ErrorBox.tsx"
import { textOf, UsdField } from "../../parts/Field.tsx"
import { Section } from "../../parts/Page.tsx"
import { RefusedField } from "../../parts/WriteDialog.tsx"
import { type Session, useRole } from "../../Session.ts"
import { usePaymentPage } from "./usePaymentPage.ts"

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

export const AddCredits = ({ limits }: { readonly limits: NonNullable<Session["payments"]> }) => (
  <Section title="Amount">
    {useRole("write") ? <AmountForm {...limits} /> : <p class="soft">Members with the role write can add credits.</p>}
  </Section>
)
