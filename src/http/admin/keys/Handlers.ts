import { HttpApiBuilder } from "@effect/platform"
import { Effect, Redacted } from "effect"
import type { CapPeriod } from "../../../domain/ApiKey.ts"
import { InvalidRequest } from "../../../domain/Failure.ts"
import type { NanoUsd } from "../../../domain/Money.ts"
import { ApiKeys, type IssuedKey } from "../../../services/access/ApiKeys.ts"
import * as Changes from "../../../services/admin/KeyChanges.ts"
import { AdminApi } from "../AdminApi.ts"
import { answerOf, conflict, invalid, notFound, recordOf } from "../Fields.ts"
import { organizationOf } from "../Filters.ts"
import { cutPage, defaultListed } from "../Page.ts"

const problems = {
  expired: ["expires_at", "`expires_at` must be in the future."],
  "cap missing": ["cap_usd", "`cap_period` needs `cap_usd`."],
  "period missing": ["cap_period", "`cap_usd` needs `cap_period`: day, week, month or total."],
  "period without cap": ["cap_period", "Without a cap there is no `cap_period`."]
} as const

const explain = ({ problem }: Changes.KeyRefused) => {
  const [param, message] = problems[problem]
  return new InvalidRequest({ message, param })
}

const unknown = { KeyNotFound: notFound }
const refused = { KeyRefused: explain, KeyRevoked: conflict(null) }

const fieldsOf = ({
  cap_period,
  cap_usd,
  expires_at,
  ...same
}: Pick<Changes.KeyFields, "name" | "rpm" | "scopes"> & {
  readonly cap_usd?: NanoUsd | null | undefined
  readonly cap_period?: CapPeriod | null | undefined
  readonly expires_at?: Date | null | undefined
}): Changes.KeyFields => ({ ...same, cap: cap_usd, capPeriod: cap_period ?? undefined, expiresAt: expires_at })

const withSecret = (record: Changes.KeyRecord, value: IssuedKey | undefined) => ({
  ...record,
  key: value === undefined ? null : Redacted.value(value.secret)
})

export const KeysHandlers = HttpApiBuilder.group(
  AdminApi,
  "keys",
  Effect.fnUntraced(function* (handlers) {
    const keys = yield* ApiKeys
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, organization, search, state } }) =>
        Effect.gen(function* () {
          const org = yield* organizationOf(organization)
          const rows = yield* keys.page({ after, limit: limit + 1, org, search, state })
          return cutPage(rows, limit, Changes.keyRecord, ({ id }) => id)
        })
      )
      .handle("create", ({ payload: { organization, ...limits } }) =>
        answerOf(Changes.createKey({ org: organization, ...fieldsOf(limits) }), withSecret).pipe(
          Effect.catchTags({ KeyRefused: explain, OrganizationNotFound: invalid("organization") })
        )
      )
      .handle("show", ({ path: { id } }) =>
        Effect.map(keys.find(id), Changes.keyRecord).pipe(Effect.catchTags(unknown))
      )
      .handle("update", ({ path: { id }, payload }) =>
        recordOf(Changes.updateKey(id, fieldsOf(payload))).pipe(Effect.catchTags({ ...unknown, ...refused }))
      )
      .handle("revoke", ({ path: { id } }) => recordOf(Changes.revokeKey(id)).pipe(Effect.catchTags(unknown)))
      .handle("reissue", ({ path: { id } }) =>
        answerOf(Changes.reissueKey(id), withSecret).pipe(Effect.catchTags({ ...unknown, KeyRevoked: conflict(null) }))
      )
  })
)
