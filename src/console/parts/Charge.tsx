import { formatUsd } from "../format/Amount.ts"
import { subtractUsd } from "../format/Subtraction.ts"
import { Badge } from "./Badge.tsx"
import { Usd } from "./Usd.tsx"

interface Charged {
  readonly charged: number
  /** Of that. */
  readonly refunded: number
}

export const RefundBadge = ({ charged, refunded }: Charged) =>
  refunded > 0 ? <Badge tone="warn">{refunded < charged ? "partly refunded" : "refunded"}</Badge> : null

/** What was paid in the end, marked where something was given back; the pointer shows how it came about. */
export const Charge = (charge: Charged) => {
  const { charged, refunded } = charge
  const paid = subtractUsd(charged, refunded)
  if (refunded === 0) return <Usd amount={charged} />
  return (
    <span title={`charged ${formatUsd(charged)}, refunded ${formatUsd(refunded)}, paid ${formatUsd(paid)}`}>
      <RefundBadge {...charge} /> <Usd amount={paid} />
    </span>
  )
}
