import { Schema } from "effect"
import { KeyId, longestGraceDays, longestKeyName, maxKeyLimit, maxRpm, Scope } from "../../domain/ApiKey.ts"
import { longestModelPattern, maxModelPatterns, modelPattern } from "../../domain/ModelPatterns.ts"
import { OrgId } from "../../domain/Organization.ts"
import * as Input from "../resources/Input.ts"
import { duration, patterns } from "../resources/Input.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/Record.ts"
import { cap } from "./Cap.ts"

const countOrNone = (about: Input.About) =>
  Input.orNone(
    { word: "none", means: "no limit" },
    { ...Input.integer(1, maxKeyLimit, about), problem: `must be an integer from 1 to ${maxKeyLimit}` }
  )

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
  models: Input.orNone(
    { word: "all", means: "all" },
    patterns(
      {
        what: "model ids or patterns such as claude-*",
        pattern: modelPattern,
        longest: longestModelPattern,
        most: maxModelPatterns
      },
      { description: "The models it may use: ids, or patterns such as claude-*", label: "Models", column: "Models" }
    )
  ),
  rpm: Input.orNone(
    { word: "default", means: "the default" },
    Input.integer(1, maxRpm, {
      description: "Requests a minute, by default the setting DEFAULT_RPM",
      label: "Requests a minute",
      column: "Per minute"
    })
  ),
  tpm: countOrNone({ description: "Tokens a minute that its chats may use", label: "Tokens a minute" }),
  concurrency: countOrNone({
    description: "Requests at once, with videos that are being made",
    label: "Requests at once"
  }),
  ...cap,
  expires_at: Input.orNone(
    { word: "never", means: "never" },
    Input.time({ description: "When it stops working", label: "Expires", column: "Expires" })
  )
} as const

/** What a new secret does to the old one. */
export const reissuing = {
  grace_seconds: Input.orNone(
    { word: "none", means: "no grace" },
    duration(longestGraceDays, { description: "How long the old secret still works", label: "The old secret" })
  )
} as const

export type KeyLimits = Input.Values<typeof limits>

export const Key = Schema.Struct({
  id: KeyId,
  org: OrgId,
  org_name: Schema.String,
  name: limits.name.record,
  hint: TextOrNull.annotations({ description: "The first characters of the secret; null for keys older than hints." }),
  scopes: limits.scopes.record,
  models: limits.models.record,
  rpm: limits.rpm.record,
  tpm: limits.tpm.record,
  concurrency: limits.concurrency.record,
  cap_usd: limits.cap_usd.record,
  cap_period: limits.cap_period.record,
  spent_usd: Usd.annotations({ description: "In the running period of the cap; without one, ever." }),
  created_at: UnixSeconds,
  last_used_at: TimeOrNull.annotations({ description: "To about a minute." }),
  expires_at: limits.expires_at.record,
  previous_expires_at: TimeOrNull.annotations({
    description: "When the secret before ends, which a reissue has left valid; null where there is none."
  }),
  revoked_at: TimeOrNull
}).annotations({ identifier: "Key" })
export type Key = typeof Key.Type
