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
