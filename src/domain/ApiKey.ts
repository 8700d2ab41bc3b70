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

/** How much of a cap is taken in its period. */
export interface CapSpend {
  readonly cap: NanoUsd
  readonly spent: NanoUsd
  /** By open holds of videos. */
  readonly held: NanoUsd
  /** Undefined: the period does not end. */
  readonly resetsAt: Date | undefined
}

export const keyPrefix = "ggw_"

export const rateWindowSeconds = 60

export const maxRpm = 2_147_483_647

/** Of requests at once, and of tokens a minute. */
export const maxKeyLimit = 1_000_000_000

/** In UTF-16 units. */
export const longestKeyName = 200

export interface Caller {
  readonly key: KeyId
  readonly org: OrgId
  /** Undefined when the key may use every surface. */
  readonly scopes: ReadonlyArray<Scope> | undefined
  /** Undefined when the key may use every model. */
  readonly models?: ModelMatcher | undefined
  /** Requests a minute; undefined: the default. */
  readonly rpm: number | undefined
  /** Tokens a minute; undefined: no limit. */
  readonly tpm?: number | undefined
  /** Requests and videos at once; undefined: no limit. */
  readonly concurrency?: number | undefined
  /** Its organization wants chats to run with a lower cap where the balance does not cover theirs. */
  readonly hasFittedHold?: boolean | undefined
  /** Its organization has a spending cap. */
  readonly isOrgCapped?: boolean | undefined
  /** A payment of its organization is disputed: it may hold nothing new. */
  readonly isDisputed?: boolean | undefined
}

/** Of the secret that a reissue replaces. */
export const longestGraceDays = 30

export const mayUseModel = ({ models }: Caller, id: string): boolean => models === undefined || models(id)

export const hasScope = ({ scopes }: Caller, scope: Scope): boolean => scopes === undefined || scopes.includes(scope)
