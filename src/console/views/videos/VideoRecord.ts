/** Amounts in USD, moments in Unix seconds. */
export interface VideoRecord {
  readonly id: string
  readonly request_id: string
  readonly at: number
  readonly status: "queued" | "in_progress" | "completed" | "failed"
  readonly step: string
  readonly org: string
  readonly org_name: string | null
  readonly key_id: string
  readonly model: string
  readonly seconds: number
  readonly route: string | null
  readonly price_usd: number
  readonly charge_usd: number | null
  readonly cost_usd: number | null
  readonly error: { readonly code: string; readonly message: string | null } | null
  readonly progress: number
  readonly completed_at: number | null
  readonly deleted_at: number | null
  readonly deadline: number
  readonly media: string | null
  readonly hold_id: string
  readonly handle: string | null
  readonly tried: ReadonlyArray<string>
  readonly attempts: ReadonlyArray<VideoAttempt>
  readonly doubts: number
  readonly polls: number
  readonly downloads: number
  readonly next_at: number | null
  readonly lease_until: number | null
}

export interface VideoAttempt {
  readonly route: string
  readonly provider: string
  readonly outcome: string
  readonly status?: number | undefined
  readonly ms: number
  readonly detail?: string | undefined
  readonly provider_request_id?: string | undefined
  readonly cost_usd?: number | undefined
}
