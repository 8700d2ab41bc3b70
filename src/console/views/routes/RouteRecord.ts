import type { InstanceRecord as Instance } from "../../../http/admin/instances/Schema.ts"

/** Amounts in USD, moments in Unix seconds. */
export interface RouteRecord {
  readonly id: string
  readonly model: string
  readonly provider: string
  readonly circuit: "closed" | "half_open" | "open"
  readonly open_until: number | null
  readonly last_error: string | null
  readonly last_error_at: number | null
  readonly latency_ms: number | null
  readonly requests: number
  readonly failures: number
  readonly instances: number
  readonly in_catalog: boolean
  readonly disabled_at: number | null
  readonly note: string | null
}

export interface Margin {
  readonly unit: string
  readonly price_usd: number
  readonly cost_usd: number
  readonly margin_usd: number
  readonly margin_pct: number | null
}

export interface CatalogRecord {
  /** One sentence for every price below its cost. */
  readonly losses: ReadonlyArray<string>
  readonly data: ReadonlyArray<{
    readonly id: string
    readonly surface: string
    readonly callable: boolean
    readonly sandboxed: boolean
    /** Why it is off. */
    readonly reason: string | null
    readonly routes: ReadonlyArray<{
      readonly id: string
      readonly provider: string
      readonly preference: number
      readonly weight: number
      /** Why it cannot be called. */
      readonly blocked: string | null
      readonly margins: ReadonlyArray<Margin>
    }>
  }>
}

export type InstanceRecord = typeof Instance.Encoded
