import type { OrganizationRecord } from "../../../services/admin/OrganizationChanges.ts"

export type Organization = typeof OrganizationRecord.Encoded

export interface Key {
  readonly id: string
  readonly org: string
  readonly org_name: string
  readonly name: string
  readonly hint: string | null
  readonly scopes: ReadonlyArray<string> | null
  readonly rpm: number | null
  readonly cap_usd: number | null
  readonly cap_period: "day" | "week" | "month" | "total" | null
  readonly spent_usd: number
  readonly created_at: number
  readonly expires_at: number | null
  readonly revoked_at: number | null
  readonly last_used_at: number | null
}

export type IssuedKey = Key & { readonly key: string | null }

export interface Entry {
  readonly id: string
  readonly at: number
  readonly org: string
  readonly kind: string
  readonly amount_usd: number
  readonly ref: string | null
  readonly note: string | null
  readonly key_id: string | null
  readonly hold_id: string | null
}

export interface ListedEntry extends Entry {
  readonly org_name: string
  /** The row of the log. */
  readonly request: string | null
  readonly request_id: string | null
}

export interface Hold {
  readonly id: string
  readonly org: string
  readonly org_name: string
  readonly key_id: string
  readonly amount_usd: number
  readonly created_at: number
  readonly video: string | null
}
