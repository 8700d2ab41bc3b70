import { Schema } from "effect"
import { CapPeriod, KeyId, longestKeyName, maxRpm, Scope } from "../../domain/ApiKey.ts"
import { OrgId } from "../../domain/Organization.ts"
import * as Input from "../resources/Input.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

/**
 * What a key may do, as operators write it. Bodies, commands, forms, columns and the audit follow from here; the column in
 * the database has the same name, without `_usd`.
 */
export const limits = {
  name: Input.text(longestKeyName, { description: "What to call the key", label: "Name" }),
  scopes: Input.orNone(
    { word: "all", means: "all" },
    Input.choices(Scope, { description: "The surfaces it may use", label: "May call", column: "Scopes" })
  ),
  rpm: Input.orNone(
    { word: "default", means: "the default" },
    Input.integer(1, maxRpm, {
      description: "Requests a minute, by default the setting DEFAULT_RPM",
      label: "Requests a minute",
      column: "Per minute"
    })
  ),
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
  ),
  expires_at: Input.orNone(
    { word: "never", means: "never" },
    Input.time({ description: "When it stops working", label: "Expires", column: "Expires" })
  )
} as const

export type KeyLimits = Input.Written<typeof limits>

export const Key = Schema.Struct({
  id: KeyId,
  org: OrgId,
  org_name: Schema.String,
  name: limits.name.record,
  hint: TextOrNull.annotations({ description: "The first characters of the secret; null for keys older than hints." }),
  scopes: limits.scopes.record,
  rpm: limits.rpm.record,
  cap_usd: limits.cap_usd.record,
  cap_period: limits.cap_period.record,
  spent_usd: Usd.annotations({ description: "In the running period of the cap; without one, ever." }),
  created_at: UnixSeconds,
  last_used_at: TimeOrNull.annotations({ description: "To about a minute." }),
  expires_at: limits.expires_at.record,
  revoked_at: TimeOrNull
}).annotations({ identifier: "Key" })
export type Key = typeof Key.Type
