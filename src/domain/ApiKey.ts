import { Schema } from "effect"
import type { Surface } from "./Model.ts"
import type { ModelMatcher } from "./ModelPatterns.ts"
import type { NanoUsd } from "./Money.ts"
import type { OrgId } from "./Organization.ts"

export const KeyId = Schema.String.pipe(Schema.brand("KeyId"))
export type KeyId = typeof KeyId.Type

export const Scope = Schema.Literal("chat", "images", "videos")
export type Scope = typeof Scope.Type

export const scopeOf: Readonly<Record<Surface, Scope>> = { chat: "chat", image: "images", video: "videos" }

export const CapPeriod = Schema.Literal("day", "week", "month", "total")
export type CapPeriod = typeof CapPeriod.Type

/** A spending cap and its use in the current period. */
export interface CapSpend {
  readonly cap: NanoUsd
  readonly spent: NanoUsd
  /** The total of the open holds of videos, which count towards the cap. */
  readonly held: NanoUsd
  /** Undefined: the period does not end. */
  readonly resetsAt: Date | undefined
}

export const keyPrefix = "ggw_"

export const rateWindowSeconds = 60

export const maxRpm = 2_147_483_647

/** The upper bound of `concurrency` and of `tpm`. */
export const maxKeyLimit = 1_000_000_000

/** In UTF-16 units. */
export const maxKeyNameLength = 200

/**
 * The limits of a key that admission checks; absent: no limit. Operators set them through the inputs of
 * `services/access/Key.ts`.
 */
interface RequestLimits {
  /** Requests per minute; absent: the setting DEFAULT_RPM. */
  readonly rpm?: number | undefined
  /** Tokens per minute. */
  readonly tpm?: number | undefined
  /** Concurrent requests and videos. */
  readonly concurrency?: number | undefined
}

export interface Caller extends RequestLimits {
  readonly key: KeyId
  readonly org: OrgId
  /** Undefined: every surface. */
  readonly scopes: ReadonlyArray<Scope> | undefined
  /** Undefined: every model. */
  readonly models?: ModelMatcher | undefined
  /** If the balance is too low for a chat request's full output cap, the request runs with a lower one. */
  readonly canReduceHold?: boolean | undefined
  /** The discount of its organization on all prices, in percent. Absent: none. */
  readonly discountPercent?: number | undefined
  /** A payment of the organization is disputed, which refuses new holds. */
  readonly isDisputed?: boolean | undefined
}

/** The maximum grace period of a secret that a reissue replaces. */
export const maxGraceDays = 30

export const mayUseModel = ({ models }: Caller, id: string): boolean => models === undefined || models(id)

export const hasScope = ({ scopes }: Caller, scope: Scope): boolean => scopes === undefined || scopes.includes(scope)
