import { Effect, Schema } from "effect"
import { CapPeriod, KeyId, maxGraceDays, maxKeyLimit, maxKeyNameLength, maxRpm, Scope } from "../../domain/ApiKey.ts"
import { maxModelPatternLength, maxModelPatterns, modelPattern } from "../../domain/ModelPatterns.ts"
import { OrgId } from "../../domain/Organization.ts"
import * as Input from "../resources/ResourceInput.ts"
import { duration, FieldRefused, patterns } from "../resources/ResourceInput.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"

/** The inputs of a spending cap, which keys and organizations have. */
export const cap = {
  cap_usd: Input.orNone(
    { word: "none", means: "no cap" },
    Input.usd("nonNegative", { description: "The maximum USD it may spend per period", label: "Spending cap (USD)" })
  ),
  cap_period: Input.orNull(
    Input.choice(CapPeriod, {
      description: "The period of the cap, in UTC",
      label: "Period (UTC)",
      needs: "cap_usd",
      suggested: "month"
    })
  )
} as const

type CapValues = Input.Values<typeof cap>

interface CurrentCap {
  readonly cap_usd: bigint | null
  readonly cap_period: CapPeriod | null
}

const periods = "day, week, month or total"

const needsPeriod = () =>
  new FieldRefused({
    field: "cap_period",
    explain: (name) => `${name("cap_usd")} needs ${name("cap_period", periods)}.`
  })

/** Fails unless the cap and its period are set together. */
export const capFrom = ({ cap_period, cap_usd }: CapValues, current?: CurrentCap) => {
  if (cap_period === null && cap_usd === undefined && (current?.cap_usd ?? null) !== null) return needsPeriod()
  const period = cap_period ?? undefined
  if (cap_usd === undefined && period === undefined) return Effect.succeed({})
  if (cap_usd === null) {
    return period === undefined
      ? Effect.succeed({ cap_usd, cap_period: null })
      : new FieldRefused({ field: "cap_period", explain: (name) => `${name("cap_period")} needs a spending cap.` })
  }
  const values = { cap_usd: cap_usd ?? current?.cap_usd, cap_period: period ?? current?.cap_period }
  if (values.cap_usd === undefined || values.cap_usd === null) {
    return new FieldRefused({ field: "cap_usd", explain: (name) => `${name("cap_period")} needs ${name("cap_usd")}.` })
  }
  if (values.cap_period === undefined || values.cap_period === null) return needsPeriod()
  return Effect.succeed(values)
}

const countOrNone = (about: Input.InputInfo) =>
  Input.orNone(
    { word: "none", means: "no limit" },
    { ...Input.integer(1, maxKeyLimit, about), problem: `must be an integer from 1 to ${maxKeyLimit}` }
  )

/** The limits that admission checks. `Auth` reads them with the key, as `RequestLimits`. */
export const requestLimits = {
  rpm: Input.orNone(
    { word: "default", means: "the gateway's default" },
    Input.integer(1, maxRpm, {
      description: "The maximum requests per minute",
      label: "Requests per minute",
      column: "Per minute"
    })
  ),
  tpm: countOrNone({ description: "The maximum chat tokens per minute", label: "Tokens per minute" }),
  concurrency: countOrNone({
    description: "The maximum concurrent requests (a video counts until it finishes)",
    label: "Concurrent requests"
  })
} as const

/**
 * The inputs that define a key. Request bodies, commands, forms, table columns and the audit log are derived from them. Each
 * has a database column of the same name, without `_usd`.
 */
export const limits = {
  name: Input.text(maxKeyNameLength, { description: "The name of the key", label: "Name" }),
  scopes: Input.orNone(
    { word: "all", means: "all" },
    Input.choices(Scope, { description: "The endpoint types it may use", label: "Scopes", column: "Scopes" })
  ),
  models: Input.orNone(
    { word: "all", means: "all" },
    patterns(
      {
        what: "model ids or patterns such as claude-*",
        pattern: modelPattern,
        maxLength: maxModelPatternLength,
        maxItems: maxModelPatterns
      },
      { description: "The models it may use: ids, or patterns such as claude-*", label: "Models", column: "Models" }
    )
  ),
  ...requestLimits,
  ...cap,
  expires_at: Input.orNone(
    { word: "never", means: "never" },
    Input.time({ description: "When it expires", label: "Expires", column: "Expires" })
  )
} as const

/** The inputs of a reissue. */
export const reissuing = {
  grace_seconds: Input.orNone(
    { word: "none", means: "no grace" },
    duration(maxGraceDays, { description: "How long the old secret stays valid", label: "The old secret" })
  )
} as const

export type KeyLimits = Input.Values<typeof limits>

export const Key = Schema.Struct({
  id: KeyId,
  org: OrgId,
  org_name: Schema.String,
  name: limits.name.record,
  hint: TextOrNull.annotations({
    description: "The first characters of the secret. Null for keys created before hints were stored."
  }),
  scopes: limits.scopes.record,
  models: limits.models.record,
  rpm: limits.rpm.record,
  tpm: limits.tpm.record,
  concurrency: limits.concurrency.record,
  cap_usd: limits.cap_usd.record,
  cap_period: limits.cap_period.record,
  spent_usd: Usd.annotations({
    description: "The charges in the cap's current period, or all charges if the key has no cap."
  }),
  created_at: UnixSeconds,
  last_used_at: TimeOrNull.annotations({ description: "Accurate to about a minute." }),
  expires_at: limits.expires_at.record,
  previous_expires_at: TimeOrNull.annotations({
    description: "When the previous secret expires, if a reissue left it valid; otherwise null."
  }),
  revoked_at: TimeOrNull
}).annotations({ identifier: "Key" })
export type Key = typeof Key.Type
