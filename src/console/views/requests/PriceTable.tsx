import type { ComponentChildren } from "preact"
import { formatCount } from "../../format/Amount.ts"
import { formatMarginShare } from "../../format/Margin.ts"
import { Internal, Usd } from "../../parts/Values.tsx"
import type { Price } from "./Outcome.ts"

const Sum = ({
  amount,
  children,
  isStrong = false
}: {
  readonly children: ComponentChildren
  readonly amount: number | null
  readonly isStrong?: boolean
}) => (
  <tr class={isStrong ? "strong" : ""}>
    <th scope="row" colSpan={3}>
      {children}
    </th>
    <td class="amount">
      <Usd amount={amount} />
    </td>
  </tr>
)

const MarginShare = ({ cost_usd, margin_usd }: Price) => {
  const share = formatMarginShare(margin_usd, cost_usd)
  return share === null ? null : (
    <tr>
      <th scope="row" colSpan={3}>
        Margin of what was paid
      </th>
      <td class="amount">{share}</td>
    </tr>
  )
}

/** Usage times rate, and what became of the sum. */
export const PriceTable = ({ price }: { readonly price: Price }) => (
  <div class="panel price">
    <Internal>{() => <p>{price.why}</p>}</Internal>
    <div class="scroll" role="region" aria-label="Price" tabIndex={0}>
      <table>
        {price.parts.length > 0 && (
          <>
            <thead>
              <tr>
                <th scope="col">Usage</th>
                <th scope="col" class="amount">
                  Quantity
                </th>
                <th scope="col" class="amount">
                  Rate
                </th>
                <th scope="col" class="amount">
                  Amount
                </th>
              </tr>
            </thead>
            <tbody>
              {price.parts.map(({ amount_usd, per, quantity, rate_usd, unit }) => (
                <tr key={unit}>
                  <td>{unit}</td>
                  <td class="amount">{formatCount(quantity)}</td>
                  <td class="amount rate">
                    <Usd amount={rate_usd} /> <small class="soft">per {per}</small>
                  </td>
                  <td class="amount">
                    <Usd amount={amount_usd} precision={12} />
                  </td>
                </tr>
              ))}
            </tbody>
          </>
        )}
        <tbody class="sums">
          {price.parts.length > 0 && <Sum amount={price.price_usd}>Sum</Sum>}
          <Sum amount={price.hold_usd}>Held</Sum>
          <Sum amount={price.charge_usd} isStrong>
            Charged
          </Sum>
          {price.refunded_usd !== 0 && (
            <>
              <Sum amount={-price.refunded_usd}>Refunded</Sum>
              <Sum amount={price.paid_usd} isStrong>
                Paid
              </Sum>
            </>
          )}
          <Internal>
            {() => (
              <>
                <Sum amount={price.cost_usd}>Provider's cost{price.cost_usd === null && ", unknown"}</Sum>
                <Sum amount={price.margin_usd} isStrong>
                  Margin
                </Sum>
                <MarginShare {...price} />
              </>
            )}
          </Internal>
        </tbody>
      </table>
    </div>
  </div>
)
