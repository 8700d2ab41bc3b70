import { Schema } from "effect"
import type { OrgId } from "./Organization.ts"

export const KeyId = Schema.String.pipe(Schema.brand("KeyId"))
export type KeyId = typeof KeyId.Type

/** The surfaces a key may be limited to; the words are those of the API. */
export const Scope = Schema.Literal("chat", "images", "videos")
export type Scope = typeof Scope.Type

export const CapPeriod = Schema.Literal("day", "week", "month", "total")
export type CapPeriod = typeof CapPeriod.Type

export const keyPrefix = "ggw_"

export const rateWindowSeconds = 60

export interface Caller {
  readonly key: KeyId
  readonly org: OrgId
  /** Undefined when the key may use every surface. */
  readonly scopes: ReadonlyArray<Scope> | undefined
  /** Requests a minute; undefined means the account default. */
  readonly rpm: number | undefined
}
