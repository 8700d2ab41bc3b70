import type { KeyId } from "../../domain/ApiKey.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"

/** An amount reserved for one request. It is closed once: settled with a charge, or released. */
export interface Hold {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly amount: NanoUsd
}

export interface Settlement {
  readonly charged: NanoUsd
  /** The cost was above the hold; the excess is the operator's. */
  readonly exceeded: boolean
  /** The hold had been released meanwhile (this process was taken for dead): nothing was charged. */
  readonly lost: boolean
  readonly logged?: true
}
