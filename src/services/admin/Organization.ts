import { Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { cap } from "../access/Cap.ts"
import * as Input from "../resources/Input.ts"
import { TimeOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

/**
 * What operators write of an organization. Bodies, commands, forms and the audit follow from here; the column in the
 * database has the same name, without `_usd`.
 */
export const settings = {
  name: Input.ruledText({
    description: "A name that no other organization has",
    label: "Name",
    isRequired: true
  }),
  notify_below_usd: Input.orAbsent(
    { word: "none", means: "never" },
    Input.usd("positive", {
      description: "The balance below which its webhook endpoints get an event",
      label: "Tell its webhooks below this balance, in USD"
    })
  ),
  fit_holds: Input.flag({
    description: "Whether chats run with a lower cap where the balance does not cover theirs",
    label: "Run chats with a lower cap where the balance does not cover theirs"
  }),
  ...cap
} as const

export type OrganizationSettings = Input.Values<typeof settings>

export const Organization = Schema.Struct({
  id: OrgId,
  name: settings.name.record,
  created_at: UnixSeconds,
  suspended: Schema.Boolean,
  deleted_at: Schema.optional(UnixSeconds),
  balance_usd: Usd,
  held_usd: Usd,
  available_usd: Usd,
  fit_holds: settings.fit_holds.record,
  notify_below_usd: Schema.optional(settings.notify_below_usd.record),
  cap_usd: settings.cap_usd.record,
  cap_period: settings.cap_period.record,
  cap_spent_usd: Schema.NullOr(Usd).annotations({ description: "In the running period of the cap; null without one." }),
  cap_resets_at: TimeOrNull.annotations({ description: "When the next period begins; null where none does." })
}).annotations({ identifier: "Organization" })
export type Organization = typeof Organization.Type
