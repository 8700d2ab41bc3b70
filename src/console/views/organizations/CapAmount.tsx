import { Usd } from "../../parts/Usd.tsx"

/** What may be spent, after what is spent. */
export const CapAmount = ({ cap, period }: { readonly cap: number; readonly period: string | null }) => (
  <>
    {"of "}
    <Usd amount={cap} />
    <span class="soft">{period === "total" ? " in all" : ` a ${period}`}</span>
  </>
)
