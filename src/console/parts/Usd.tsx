import { partsOfUsd } from "../format/Amount.ts"

/** Every digit; those after the cents are written softly. */
export const Usd = ({
  amount,
  precision
}: {
  readonly amount: number | null | undefined
  /** How many decimals there may be, where not nine. */
  readonly precision?: number
}) => {
  if (amount === null || amount === undefined) return <span class="soft">–</span>
  const { fine, main, sign } = partsOfUsd(amount, precision)
  return (
    <span class={amount < 0 ? "usd negative" : "usd"}>
      {sign}
      {main}
      {fine && <span class="fine">{fine}</span>}
    </span>
  )
}
