import { Badge } from "../../parts/Badge.tsx"
import { outcomeOf } from "./Outcome.ts"
import type { Attempt } from "./RequestRecord.ts"

export const OutcomeBadge = ({ of: { outcome, status } }: { readonly of: Pick<Attempt, "outcome" | "status"> }) => {
  const { text, tone } = outcomeOf(outcome)
  return (
    <Badge tone={tone}>
      {text}
      {status !== undefined && ` ${status}`}
    </Badge>
  )
}
