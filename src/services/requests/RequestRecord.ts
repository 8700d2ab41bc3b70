import type { Caller } from "../../domain/ApiKey.ts"
import type { Settlement } from "../../domain/Hold.ts"
import type { RouteBase, Surface } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { Allowance, TokenAllowance } from "../access/RateLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { AttemptHistory } from "../routing/Attempt.ts"
import type { RequestTrace } from "../tracing/Tracing.ts"
import type { RequestUsage } from "./RequestCounts.ts"
import type { ReportedError, RequestEntry } from "./RequestEntry.ts"

type Note = RequestEntry["notes"][number]

/** Facts of a generating request that are known once it is authenticated. */
interface RequestFacts {
  /** UUID v7. Also the id of its hold and of its log row. */
  readonly id: string
  readonly requestId: string
  readonly surface: Surface
  readonly caller: Caller
  readonly client?: { readonly address: string; readonly userAgent: string | undefined } | undefined
  readonly tag?: string | undefined
  /** Unix milliseconds. */
  readonly at: number
  /** On the monotonic clock. */
  readonly startedAt: number
  /** The limit of the key, in requests a minute. */
  readonly rateLimit: number
  readonly trace?: RequestTrace | undefined
}

type RequestEvent =
  /** Remaining allowances of the key in the current minute. */
  | { readonly type: "allowed"; readonly rate?: Allowance; readonly tokens?: TokenAllowance }
  /** The body was read. `endUser` is the customer's name for the end user. */
  | { readonly type: "read"; readonly model: string | undefined; readonly endUser: string | undefined }
  | { readonly type: "decoded"; readonly stream: boolean }
  /** `priceId` identifies the rates of a chat. */
  | { readonly type: "resolved"; readonly model: string; readonly priceId?: string }
  /** `cap` is the reduced output cap, if the balance was too low. */
  | { readonly type: "held"; readonly hold: string; readonly cap?: number | undefined }
  /** `at` is the time of the first output, on the monotonic clock. */
  | { readonly type: "answered"; readonly route?: RouteBase | undefined; readonly at?: number }
  | { readonly type: "measured"; readonly usage: RequestUsage; readonly cost?: bigint | undefined }
  /** The cost that the provider reported; null if it is not an amount. */
  | { readonly type: "stated"; readonly cost: NanoUsd | null }
  /** `isLogged`: the row was written together with the charge. */
  | { readonly type: "settled"; readonly charged: bigint; readonly isLogged: boolean }
  /** The request failed after its charge, which is refunded. */
  | { readonly type: "refunded" }
  | { readonly type: "noted"; readonly note: Note }
  /** The key exceeded its rate limit, so the record omits the model. */
  | { readonly type: "limited" }
  /** `code` overrides that of the response, e.g. `stream_error` beside a status 200. */
  | { readonly type: "failed"; readonly error?: ReportedError; readonly code?: string }
  | { readonly type: "left" }
  /** The request gets no log row. */
  | { readonly type: "unlogged" }

export interface RequestSummary extends RequestFacts {
  readonly attempts: AttemptHistory
  readonly notes: ReadonlySet<Note>
  readonly rate: Allowance | undefined
  readonly tokens: TokenAllowance | undefined
  readonly endUser: string | undefined
  readonly model: string | undefined
  readonly priceId: string | undefined
  readonly stream: boolean
  readonly hold: string | undefined
  readonly cap: number | undefined
  readonly route: RouteBase | undefined
  readonly firstByteAt: number | undefined
  readonly usage: RequestUsage | undefined
  readonly cost: bigint | undefined
  readonly statedCost: NanoUsd | undefined
  readonly charge: bigint
  readonly error: ReportedError | undefined
  readonly code: string | undefined
  readonly isLogged: boolean
  readonly hasLeft: boolean
}

class State implements RequestSummary {
  readonly id: string
  readonly requestId: string
  readonly surface: Surface
  readonly caller: Caller
  readonly client: RequestFacts["client"]
  readonly tag: string | undefined
  readonly at: number
  readonly startedAt: number
  readonly rateLimit: number
  readonly trace: RequestTrace | undefined
  readonly attempts: AttemptHistory
  readonly notes = new Set<Note>()
  rate: Allowance | undefined
  tokens: TokenAllowance | undefined
  endUser: string | undefined
  model: string | undefined
  priceId: string | undefined
  stream = false
  hold: string | undefined
  cap: number | undefined
  route: RouteBase | undefined
  firstByteAt: number | undefined
  usage: RequestUsage | undefined
  cost: bigint | undefined
  statedCost: NanoUsd | undefined
  charge = 0n
  error: ReportedError | undefined
  code: string | undefined
  isLogged = false
  hasLeft = false

  constructor(facts: RequestFacts, attempts: AttemptHistory) {
    this.id = facts.id
    this.requestId = facts.requestId
    this.surface = facts.surface
    this.caller = facts.caller
    this.client = facts.client
    this.tag = facts.tag
    this.at = facts.at
    this.startedAt = facts.startedAt
    this.rateLimit = facts.rateLimit
    this.trace = facts.trace
    this.attempts = attempts
  }
}

/** The immutable facts of a request and the state after its events. Only an event changes the state. */
export class RequestRecord {
  readonly facts: RequestFacts
  readonly attempts: AttemptHistory
  readonly #state: State

  constructor(facts: RequestFacts) {
    const { caller, trace } = facts
    this.facts = facts
    trace?.identify(caller.org)
    this.attempts = new AttemptHistory(caller.org, trace)
    this.#state = new State(facts, this.attempts)
  }

  add(event: RequestEvent): void {
    apply(this.#state, event)
  }

  note(note: Note): void {
    this.add({ type: "noted", note })
  }

  /** `isLogged`: the row was written together with the charge, and is complete. */
  settled({ charged, isExceeded: exceeded, isLogged: logged, wasReleased }: Settlement, isLogged: boolean): void {
    this.add({ type: "settled", charged, isLogged: logged === true && isLogged })
    if (exceeded) this.note("hold_exceeded")
    if (wasReleased) this.note("hold_lost")
  }

  /** The current state. Later events change the returned object. */
  get summary(): RequestSummary {
    return this.#state
  }
}

const apply = (state: State, event: RequestEvent): void => {
  switch (event.type) {
    case "allowed":
      state.rate = event.rate ?? state.rate
      state.tokens = event.tokens ?? state.tokens
      break
    case "read":
      state.model = event.model
      state.endUser = event.endUser
      break
    case "decoded":
      state.stream = event.stream
      break
    case "resolved":
      state.model = event.model
      state.priceId = event.priceId
      break
    case "held":
      state.hold = event.hold
      state.cap = event.cap
      break
    case "answered":
      state.route = event.route ?? state.route
      state.firstByteAt = event.at ?? state.firstByteAt
      break
    case "measured":
      state.usage = event.usage
      state.cost = event.cost
      break
    case "stated":
      if (event.cost === null) state.notes.add("stated_cost_dropped")
      else state.statedCost = event.cost
      break
    case "settled":
      state.charge = event.charged
      state.isLogged = event.isLogged
      break
    case "refunded":
      state.charge = 0n
      break
    case "noted":
      state.notes.add(event.note)
      break
    case "limited":
      state.model = undefined
      state.stream = false
      break
    case "failed":
      state.error ??= event.error
      state.code = event.code ?? state.code
      break
    case "left":
      state.hasLeft = true
      break
    case "unlogged":
      state.isLogged = true
  }
}

/** Returns the cost of the request in nano-USD, including that of failed attempts. */
export const totalCostOf = ({ attempts, cost }: RequestSummary): bigint =>
  attempts.list.reduce((sum, attempt) => sum + (attempt.cost ?? 0n), cost ?? 0n)

/** Updates the metrics of provider-reported and catalog cost, if both are known. Call it once, after the charge. */
export const countStatedCost = ({ cost, route, statedCost }: RequestSummary): void => {
  if (statedCost === undefined || cost === undefined || route === undefined) return
  Metrics.unsafeUpdate(Metrics.statedCostNanoUsd, Number(statedCost), { route: route.id })
  Metrics.unsafeUpdate(Metrics.comparedCostNanoUsd, Number(cost), { route: route.id })
}

interface ResponseStatus {
  readonly status: number
  readonly code: string | null
}

/** Returns the logged outcome: 499 if the client has disconnected. */
export const outcomeOf = ({ code, hasLeft }: RequestSummary, response: ResponseStatus): ResponseStatus =>
  hasLeft ? { status: 499, code: "client_closed" } : { status: response.status, code: code ?? response.code }

/** Returns the log row. `endedAt` is on the monotonic clock. */
export const entryOf = (summary: RequestSummary, response: ResponseStatus, endedAt: number): RequestEntry => ({
  id: summary.id,
  requestId: summary.requestId,
  at: summary.at,
  surface: summary.surface,
  ...outcomeOf(summary, response),
  error: summary.hasLeft ? undefined : summary.error,
  org: summary.caller.org,
  key: summary.caller.key,
  address: summary.client?.address,
  userAgent: summary.client?.userAgent,
  endUser: summary.endUser,
  tag: summary.tag,
  model: summary.model,
  route: summary.route?.id,
  preferredRoute: summary.attempts.preferredRoute,
  provider: summary.route?.provider.name,
  stream: summary.stream,
  attempts: summary.attempts.list,
  notes: [...summary.notes],
  usage: summary.usage,
  hold: summary.hold,
  charge: summary.charge,
  cost: summary.cost,
  statedCost: summary.statedCost,
  priceId: summary.priceId,
  firstByteMs: summary.firstByteAt === undefined ? undefined : summary.firstByteAt - summary.startedAt,
  totalMs: endedAt - summary.startedAt
})
