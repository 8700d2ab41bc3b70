import { Effect } from "effect"
import { CapPeriod } from "../../domain/ApiKey.ts"
import * as Input from "../resources/Input.ts"
import { FieldRefused } from "../resources/Input.ts"

/** The spending cap of a key or of an organization, as operators write it. */
export const cap = {
  cap_usd: Input.orNone(
    { word: "none", means: "no cap" },
    Input.usd("nonNegative", { description: "The most USD it may spend in a period", label: "May spend, in USD" })
  ),
  cap_period: Input.orNull(
    Input.choice(CapPeriod, {
      description: "The period of the cap, by UTC",
      label: "Period (UTC)",
      needs: "cap_usd",
      suggested: "month"
    })
  )
} as const

type CapValues = Input.Values<typeof cap>

interface PresentCap {
  readonly cap_usd: bigint | null
  readonly cap_period: CapPeriod | null
}

const periods = "day, week, month or total"

const needsPeriod = () =>
  new FieldRefused({
    field: "cap_period",
    explain: (name) => `${name("cap_usd")} needs ${name("cap_period", periods)}.`
  })

/** A cap and its period are there together. */
export const capFrom = ({ cap_period, cap_usd }: CapValues, present?: PresentCap) => {
  if (cap_period === null && cap_usd === undefined && (present?.cap_usd ?? null) !== null) return needsPeriod()
  const given = cap_period ?? undefined
  if (cap_usd === undefined && given === undefined) return Effect.succeed({})
  if (cap_usd === null) {
    return given === undefined
      ? Effect.succeed({ cap_usd, cap_period: null })
      : new FieldRefused({ field: "cap_period", explain: (name) => `Without a cap there is no ${name("cap_period")}.` })
  }
  const values = { cap_usd: cap_usd ?? present?.cap_usd, cap_period: given ?? present?.cap_period }
  if (values.cap_usd === undefined || values.cap_usd === null) {
    return new FieldRefused({ field: "cap_usd", explain: (name) => `${name("cap_period")} needs ${name("cap_usd")}.` })
  }
  if (values.cap_period === undefined || values.cap_period === null) return needsPeriod()
  return Effect.succeed(values)
}

/** SQL of what a key of `api_keys` has spent since the period began; `condition` may leave out days. */
export const spentOfKey = (period = "api_keys.cap_period", condition = "true") => `(
    SELECT coalesce(sum(spent), 0) FROM key_spend
    WHERE key_id = api_keys.id AND day >= cap_period_start(${period}) AND ${condition}
  )`

/** SQL of what the jobs of a key of `api_keys` hold; its cap counts these as spent. */
export const jobHoldsOfKey = `(
    SELECT coalesce(sum(amount), 0) FROM holds
    WHERE key_id = api_keys.id AND state = 'open' AND instance_id IS NULL
  )`

/** SQL of what an organization was charged in the running period of its cap; null without a cap. */
export const capSpent = `CASE WHEN cap_since >= cap_period_start(cap_period) THEN cap_spent WHEN cap IS NOT NULL THEN 0 END`

/** SQL of when the next period begins; null without a cap, and where none does. */
export const capResetsAt = "cap_period_end(cap_period)"
