/** `openAccount` creates an organization with credits and an API key in the test's database. */

import { randomUUID } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { CapPeriod, KeyId, Scope as KeyScope } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { OrgId } from "../../../src/domain/Organization.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { administration } from "../../../src/services/admin/AdminServices.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"

export interface Account {
  readonly org: OrgId
  readonly key: KeyId
  readonly secret: string
}

/** The services with which an operator sets up a customer. */
export const operator = administration

/** Creates an organization with credits and one key. */
export const openAccount = (options: {
  readonly nanoUsd?: bigint
  readonly scopes?: ReadonlyArray<KeyScope>
  readonly models?: ReadonlyArray<string>
  readonly rpm?: number
  readonly tpm?: number
  readonly concurrency?: number
  readonly cap?: { readonly amount: bigint; readonly period: CapPeriod }
  readonly canReduceHold?: boolean
}) =>
  Effect.gen(function* () {
    const organizations = yield* Organizations
    const keys = yield* ApiKeys
    const credits = options.nanoUsd ?? 100_000_000_000n
    const { id } = yield* organizations.create({
      name: `test-${randomUUID()}`,
      ...(credits > 0n ? { credits: NanoUsd(credits) } : {})
    })
    if (options.canReduceHold === true) yield* organizations.update(id, { fit_holds: true })
    const { record, secret } = yield* keys.create({
      org: id,
      scopes: options.scopes,
      models: options.models,
      rpm: options.rpm,
      tpm: options.tpm,
      concurrency: options.concurrency,
      ...(options.cap && { cap_usd: NanoUsd(options.cap.amount), cap_period: options.cap.period })
    })
    return { org: id, key: record.id, secret: Redacted.value(secret) } satisfies Account
  })
