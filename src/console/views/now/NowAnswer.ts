/** Amounts in USD, moments in Unix seconds. */
export interface Figures {
  readonly requests: number
  readonly errors: number
  readonly refusals: number
  readonly charge_usd: number
  readonly cost_usd: number
  readonly margin_usd: number
  /** Requests whose cost nobody knows. */
  readonly cost_unknown: number
  readonly first_byte_p50_ms: number | null
  readonly first_byte_p95_ms: number | null
}

export interface Circuit {
  readonly route: string
  readonly state: "open" | "half_open" | "disabled"
  readonly until: number | null
  readonly last_error: string | null
  readonly last_error_at: number | null
  readonly note: string | null
}

export interface Attention {
  readonly kind: string
  readonly title: string
  readonly detail: string
  readonly org?: string | null
  readonly org_name?: string | null
  readonly href: string
}

export interface NowAnswer {
  readonly at: number
  readonly today: Figures
  readonly yesterday: Figures
  readonly hours: ReadonlyArray<{
    readonly hour: number
    readonly requests: number
    readonly errors: number
    readonly refusals: number
    readonly charge_usd: number
  }>
  readonly holds: {
    readonly open: number
    readonly amount_usd: number
    readonly oldest: {
      readonly id: string
      readonly org: string
      readonly org_name: string
      readonly amount_usd: number
      readonly created_at: number
    } | null
  }
  readonly circuits: ReadonlyArray<Circuit>
  readonly attention: ReadonlyArray<Attention>
}
