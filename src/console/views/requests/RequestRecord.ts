/** Amounts in USD, moments in Unix seconds. */
export interface Attempt {
  readonly route: string
  readonly provider: string
  readonly outcome: string
  readonly status?: number | undefined
  readonly ms: number
  readonly detail?: string | undefined
  readonly provider_request_id?: string | undefined
  readonly cost_usd?: number | undefined
}

export interface RequestRecord {
  readonly id: string
  readonly request_id: string
  readonly at: number
  readonly status: number
  readonly code: string | null
  readonly org: string
  readonly org_name: string | null
  readonly key_id: string
  readonly key_name: string | null
  readonly address: string | null
  readonly user_agent: string | null
  readonly surface: string
  readonly model: string | null
  readonly stream: boolean
  readonly route: string | null
  readonly preferred_route: string | null
  readonly provider_request_id: string | null
  readonly attempts: ReadonlyArray<Attempt>
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
    readonly cached_tokens: number
    readonly cache_write_tokens: number
    readonly cache_write_1h_tokens: number
    readonly reasoning_tokens: number
    readonly web_searches: number
  } | null
  readonly notes: ReadonlyArray<string>
  readonly charge_usd: number
  readonly cost_usd: number | null
  readonly first_byte_ms: number | null
  readonly total_ms: number
}

export interface TimelineEvent {
  readonly event: string
  /** After the request came. */
  readonly at_ms?: number | undefined
  readonly took_ms?: number | undefined
  readonly detail?: string | null | undefined
}

export interface PricePart {
  readonly unit: string
  readonly quantity: number
  readonly rate_usd: number
  readonly per: string
  readonly amount_usd: number
}

export interface Price {
  readonly parts: ReadonlyArray<PricePart>
  readonly price_usd: number | null
  readonly hold_usd: number | null
  readonly charge_usd: number
  readonly refunded_usd: number
  readonly paid_usd: number
  readonly cost_usd: number | null
  readonly margin_usd: number | null
  readonly why: string
}

export interface LedgerEntry {
  readonly id: string
  readonly at: number
  readonly kind: string
  readonly amount_usd: number
  readonly ref: string | null
  readonly note: string | null
}

export interface RequestDetail extends RequestRecord {
  readonly hold: {
    readonly id: string
    readonly amount_usd: number
    readonly state: string
    readonly charged_usd: number | null
    readonly created_at: number
    readonly closed_at: number | null
  } | null
  readonly timeline: ReadonlyArray<TimelineEvent>
  readonly price: Price
  readonly entries: ReadonlyArray<LedgerEntry>
  readonly video: {
    readonly id: string
    readonly status: string
    readonly step: string
    readonly attempts: ReadonlyArray<Attempt>
  } | null
  /** The other rows of the same request id. */
  readonly others: ReadonlyArray<string>
}
