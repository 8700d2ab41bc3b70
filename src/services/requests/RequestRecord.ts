import type { Caller } from "../../domain/ApiKey.ts"
import type { Settlement } from "../../domain/Hold.ts"
import type { RouteBase, Surface } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { Allowance } from "../access/RateLimiter.ts"
import type { TokenAllowance } from "../access/TokenLimiter.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { AttemptHistory } from "../routing/AttemptHistory.ts"
import type { RequestTrace } from "../tracing/Tracing.ts"
import type { RequestUsage } from "./RequestCounts.ts"
import type { ReportedError, RequestEntry } from "./RequestEntry.ts"

type Note = RequestEntry["notes"][number]

/** What is known of a generating request as soon as its caller is. */
export interface RequestFacts {
  /** UUID v7; also the id of its hold and of its row in the log. */
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
  /** The key's limit, in requests a minute. */
  readonly rateLimit: number
  readonly trace?: RequestTrace | undefined
}

/** What happens to a request, added by the stage that learns of it. */
export type RequestEvent =
  /** What its key has left for the running minute. */
  | { readonly type: "allowed"; readonly rate?: Allowance; readonly tokens?: TokenAllowance }
  /** Its body was read: the model, and who uses the customer's product, as the customer names them. */
  | { readonly type: "read"; readonly model: string | undefined; readonly endUser: string | undefined }
  | { readonly type: "decoded"; readonly stream: boolean }
  /** `priceId`: of the rates that a chat is charged by. */
  | { readonly type: "resolved"; readonly model: string; readonly priceId?: string }
  /** `cap`: the output that the balance covers, where that is less than was asked for. */
  | { readonly type: "held"; readonly hold: string; readonly cap?: number | undefined }
  /** `at`: of its first output, on the monotonic clock. */
  | { readonly type: "answered"; readonly route?: RouteBase | undefined; readonly at?: number }
  | { readonly type: "measured"; readonly usage: RequestUsage; readonly cost?: bigint | undefined }
  /** What the provider says that the answer cost; null: it states no amount. */
  | { readonly type: "stated"; readonly cost: NanoUsd | null }
  /** `isLogged`: its row was written together with its charge. */
  | { readonly type: "settled"; readonly charged: bigint; readonly isLogged: boolean }
  /** It failed after its charge, which is given back. */
  | { readonly type: "refunded" }
  | { readonly type: "noted"; readonly note: Note }
  /** Its key has no rate unit left, so that it counts as not looked at. */
  | { readonly type: "limited" }
  /** `code` overrides that of the response, e.g. `stream_error` beside a status 200. */
  | { readonly type: "failed"; readonly error?: ReportedError; readonly code?: string }
  | { readonly type: "left" }
  /** It has no row in the log. */
  | { readonly type: "unlogged" }

/** A request as far as it has come. */
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

/** What the events so far come to. */
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

/** Facts that don't change, and what its events so far come to. Only an event changes it. */
export class RequestRecord {
  readonly facts: RequestFacts
  /** Filled while routing. */
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

  /** `isLogged`: its row was written together with its charge, and is complete. */
  settled({ charged, exceeded, logged, wasReleased }: Settlement, isLogged: boolean): void {
    this.add({ type: "settled", charged, isLogged: logged === true && isLogged })
    if (exceeded) this.note("hold_exceeded")
    if (wasReleased) this.note("hold_lost")
  }

  /** As it is now: each event changes it. */
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

/** Failed attempts included, in nano-USD. */
export const totalCostOf = ({ attempts, cost }: RequestSummary): bigint =>
  attempts.list.reduce((sum, attempt) => sum + (attempt.cost ?? 0n), cost ?? 0n)

/** Counts what the provider states beside what the catalog says, if both are known; call once, after the charge. */
export const countStatedCost = ({ cost, route, statedCost }: RequestSummary): void => {
  if (statedCost === undefined || cost === undefined || route === undefined) return
  Metrics.unsafeUpdate(Metrics.statedCostNanoUsd, Number(statedCost), { route: route.id })
  Metrics.unsafeUpdate(Metrics.comparedCostNanoUsd, Number(cost), { route: route.id })
}

interface Answered {
  readonly status: number
  readonly code: string | null
}

/** How it is reported to have ended: 499 where the client has left. */
export const outcomeOf = ({ code, hasLeft }: RequestSummary, answered: Answered): Answered =>
  hasLeft ? { status: 499, code: "client_closed" } : { status: answered.status, code: code ?? answered.code }

/** The row of the log. `endedAt` is on the monotonic clock. */
export const entryOf = (summary: RequestSummary, answered: Answered, endedAt: number): RequestEntry => ({
  id: summary.id,
  requestId: summary.requestId,
  at: summary.at,
  surface: summary.surface,
  ...outcomeOf(summary, answered),
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
