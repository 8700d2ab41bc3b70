import type { Caller } from "../../domain/ApiKey.ts"
import type { Settlement } from "../../domain/Hold.ts"
import type { RouteBase, Surface } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { RateUnit } from "../access/RateLimiter.ts"
import type { TokenUse } from "../access/TokenLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { AttemptHistory } from "../routing/AttemptHistory.ts"
import { type ReserveMemory, unlimitedMemory } from "../runtime/RequestMemory.ts"
import type { RequestTrace } from "../tracing/Tracing.ts"
import type { RequestUsage } from "./RequestCounts.ts"
import type { ReportedError, RequestEntry } from "./RequestEntry.ts"

type Note = RequestEntry["notes"][number]

interface RequestStart
  extends Pick<RequestRecord, "id" | "requestId" | "surface" | "caller" | "at" | "startedAt">,
    Partial<Pick<RequestRecord, "client" | "tag" | "trace">> {
  /** Requests a minute. */
  readonly limit: number
}

/** Filled in by each stage, so that the log has a row wherever the request ends. */
// Handed on, and no service of the request: each stage would pay operations to ask for it.
export class RequestRecord {
  readonly id: string
  readonly requestId: string
  readonly surface: Surface
  readonly caller: Caller
  readonly client: { readonly address: string; readonly userAgent: string | undefined } | undefined
  readonly tag: string | undefined
  /** Unix milliseconds. */
  readonly at: number
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly trace: RequestTrace | undefined
  readonly attempts: AttemptHistory
  readonly notes = new Set<Note>()
  readonly rate: RateUnit
  /** Who uses the customer's product, as the customer names them; of at most 128 characters. */
  endUser: string | undefined
  /** Undefined for keys without a limit of tokens. */
  readonly tokens: TokenUse | undefined
  model: string | undefined
  route: RouteBase | undefined
  stream = false
  hold: string | undefined
  /** The output that the balance covers, where that is less than was asked for. */
  cap: number | undefined
  usage: RequestUsage | undefined
  charge = 0n
  cost: bigint | undefined
  /** What the provider says that the answer cost. */
  statedCost: NanoUsd | undefined
  /** Of the rates that a chat is charged by. */
  priceId: string | undefined
  /** On the monotonic clock. */
  firstByteAt: number | undefined
  departed = false
  reserveMemory: ReserveMemory = unlimitedMemory
  /** Its row was written together with its charge. */
  isLogged = false
  /** Overrides the response's code, e.g. `stream_error` beside a status 200. */
  code: string | undefined
  /** The error that the client received, with its dialect's field names. */
  error: ReportedError | undefined

  constructor(start: RequestStart) {
    const { caller, trace } = start
    this.id = start.id
    this.requestId = start.requestId
    this.surface = start.surface
    this.caller = caller
    this.client = start.client
    this.tag = start.tag
    this.at = start.at
    this.startedAt = start.startedAt
    this.trace = trace
    this.attempts = new AttemptHistory(caller.org, trace?.identify(caller.org))
    this.rate = { limit: start.limit, allowance: undefined }
    this.tokens = caller.tpm === undefined ? undefined : { limit: caller.tpm, window: undefined, allowance: undefined }
  }

  /** Failed attempts included. */
  get totalCost(): bigint {
    return this.attempts.list.reduce((sum, { cost = 0n }) => sum + cost, this.cost ?? 0n)
  }

  /** Null: the provider stated no amount. */
  addStatedCost(stated: NanoUsd | null): void {
    if (stated === null) this.notes.add("stated_cost_dropped")
    else this.statedCost = stated
  }

  addSettlement({ charged, exceeded, logged, wasReleased }: Settlement): void {
    this.charge = charged
    this.isLogged = logged === true
    if (exceeded) this.notes.add("hold_exceeded")
    if (wasReleased) this.notes.add("hold_lost")
  }

  /** Counts what the provider states beside what the catalog says, if both are known; call once, after the charge. */
  countStatedCost(): void {
    const { cost, route, statedCost } = this
    if (statedCost === undefined || cost === undefined || route === undefined) return
    Metrics.unsafeUpdate(Metrics.statedCostNanoUsd, Number(statedCost), { route: route.id })
    Metrics.unsafeUpdate(Metrics.comparedCostNanoUsd, Number(cost), { route: route.id })
  }

  outcome({ code, status }: { readonly status: number; readonly code: string | null }) {
    return this.departed ? { status: 499, code: "client_closed" } : { status, code: this.code ?? code }
  }

  entry(outcome: { readonly status: number; readonly code: string | null; readonly endedAt: number }): RequestEntry {
    return {
      id: this.id,
      requestId: this.requestId,
      at: this.at,
      surface: this.surface,
      ...this.outcome(outcome),
      error: this.departed ? undefined : this.error,
      org: this.caller.org,
      key: this.caller.key,
      address: this.client?.address,
      userAgent: this.client?.userAgent,
      endUser: this.endUser,
      tag: this.tag,
      model: this.model,
      route: this.route?.id,
      preferredRoute: this.attempts.preferredRoute,
      provider: this.route?.provider.name,
      stream: this.stream,
      attempts: this.attempts.list,
      notes: [...this.notes],
      usage: this.usage,
      hold: this.hold,
      charge: this.charge,
      cost: this.cost,
      statedCost: this.statedCost,
      priceId: this.priceId,
      firstByteMs: this.firstByteAt === undefined ? undefined : this.firstByteAt - this.startedAt,
      totalMs: outcome.endedAt - this.startedAt
    }
  }
}
