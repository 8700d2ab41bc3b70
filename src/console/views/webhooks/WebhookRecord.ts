/** Moments in Unix seconds. */
export interface EndpointRecord {
  readonly id: string
  readonly org: string
  readonly org_name?: string | null
  readonly url: string
  readonly created_at: number
  readonly disabled_at: number | null
  readonly pending: number
  readonly failure: string | null
  readonly failed_at: number | null
}

/** Null is the secret of a repeated request. */
export type IssuedEndpoint = EndpointRecord & { readonly secret: string | null }

export interface DeliveryRecord {
  readonly id: string
  readonly org: string
  readonly org_name?: string | null
  readonly endpoint: string | null
  readonly url: string
  readonly type: string
  readonly at: number
  readonly state: "pending" | "delivered" | "failed"
  readonly tries: number
  readonly tried_at: number | null
  readonly status: number | null
  readonly failure: string | null
  readonly next_at: number | null
}
