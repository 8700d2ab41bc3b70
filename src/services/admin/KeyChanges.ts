import { Clock, Data, Effect, Schema } from "effect"
import { CapPeriod, Scope } from "../../domain/ApiKey.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import { type ApiKey, ApiKeys, type Cap, type KeyChanges, type KeyNotFound } from "../access/ApiKeys.ts"
import { Organizations } from "../access/Organizations.ts"
import { Audit } from "./Audit.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "./Record.ts"

export const KeyRecord = Schema.Struct({
  id: Schema.String,
  org: Schema.String,
  org_name: Schema.String,
  name: Schema.String,
  hint: TextOrNull,
  scopes: Schema.NullOr(Schema.Array(Scope)),
  rpm: Schema.NullOr(Schema.Number),
  cap_usd: Schema.NullOr(Usd),
  cap_period: Schema.NullOr(CapPeriod),
  spent_usd: Usd,
  created_at: UnixSeconds,
  expires_at: TimeOrNull,
  revoked_at: TimeOrNull,
  last_used_at: TimeOrNull
}).annotations({ identifier: "Key" })
export type KeyRecord = typeof KeyRecord.Type

export const keyRecord = (key: ApiKey): KeyRecord => ({
  id: key.id,
  org: key.orgId,
  org_name: key.orgName,
  name: key.name,
  hint: key.hint,
  scopes: key.scopes,
  rpm: key.rpm,
  cap_usd: key.cap,
  cap_period: key.capPeriod,
  spent_usd: key.spent,
  created_at: key.createdAt,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  last_used_at: key.lastUsedAt
})

/** What an operator says of a key: undefined keeps what is, null removes a limit. */
export interface KeyFields extends Omit<KeyChanges, "cap"> {
  readonly cap?: NanoUsd | null | undefined
  readonly capPeriod?: CapPeriod | undefined
}

/** The caller words the message. */
export class KeyRefused extends Data.TaggedError("KeyRefused")<{
  readonly problem: "expired" | "cap missing" | "period missing" | "period without cap"
}> {}

const capFrom = Effect.fnUntraced(function* ({ cap, capPeriod }: KeyFields, present: Cap | undefined) {
  if (cap === undefined && capPeriod === undefined) return undefined
  if (cap === null) return capPeriod === undefined ? null : yield* new KeyRefused({ problem: "period without cap" })
  const amount = cap ?? present?.amount
  const period = capPeriod ?? present?.period
  if (amount === undefined) return yield* new KeyRefused({ problem: "cap missing" })
  if (period === undefined) return yield* new KeyRefused({ problem: "period missing" })
  return { amount, period }
})

const changesFrom = Effect.fnUntraced(function* (given: KeyFields, present?: Cap) {
  const { expiresAt, name, rpm, scopes } = given
  const now = yield* Clock.currentTimeMillis
  if (expiresAt && expiresAt.getTime() <= now) return yield* new KeyRefused({ problem: "expired" })
  return { name, scopes, rpm, cap: yield* capFrom(given, present), expiresAt }
})

const common = {
  record: KeyRecord,
  targetOf: ({ id }: KeyRecord) => id,
  orgOf: ({ org }: KeyRecord) => org
}

const ofIssued = ({ record }: { readonly record: ApiKey }) => keyRecord(record)

export const createKey = (given: KeyFields & { readonly org: string }) =>
  Effect.gen(function* () {
    const audit = yield* Audit
    const { keep } = yield* Organizations
    const { create } = yield* ApiKeys
    const run = Effect.gen(function* () {
      const changes = yield* changesFrom(given)
      const { id } = yield* keep(given.org)
      return yield* create({ org: id, ...changes })
    })
    return yield* audit.create({ ...common, action: "keys.create", input: given, run, recordOf: ofIssued })
  })

const changeOne = <A, E>(
  action: string,
  id: string,
  input: unknown,
  recordOf: (value: A) => KeyRecord,
  run: (keys: typeof ApiKeys.Service, id: string) => Effect.Effect<A, E | KeyNotFound>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const keys = yield* ApiKeys
    return yield* change({
      ...common,
      action: `keys.${action}`,
      input,
      target: id,
      find: (reference) => Effect.map(keys.find(reference), keyRecord),
      run: (id) => run(keys, id),
      recordOf
    })
  })

export const updateKey = (id: string, given: KeyFields) =>
  changeOne("update", id, given, keyRecord, ({ find, update }, id) =>
    Effect.gen(function* () {
      const { cap, capPeriod } = yield* find(id)
      const present = cap === null || capPeriod === null ? undefined : { amount: cap, period: capPeriod }
      return yield* update(id, yield* changesFrom(given, present))
    })
  )

export const revokeKey = (id: string) => changeOne("revoke", id, {}, keyRecord, ({ revoke }, id) => revoke(id))

/** With the new secret, once. */
export const reissueKey = (id: string) => changeOne("reissue", id, {}, ofIssued, ({ reissue }, id) => reissue(id))
