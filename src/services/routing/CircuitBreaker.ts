import type { ProviderFailure } from "./Provider.ts"

/** `half_open`: one request may probe, or is probing. */
export type CircuitState = "closed" | "open" | "half_open"

const second = 1000
const failuresToOpen = 5
const opening = { first: second, most: 60 * second }
const accountOpening = { first: 300 * second, most: 3600 * second }
const lastRouteMost = 5 * second
const probeLease = 60 * second
const latencyWeight = 0.2
const longestError = 300

/** A permit of an earlier `epoch` says nothing about the current circuit. */
export interface Permit {
  readonly epoch: number
}

const describeFailure = ({ class: kind, detail, status }: ProviderFailure) =>
  `${kind} ${status ?? "-"}: ${detail}`.slice(0, longestError).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")

/** Doubles; up to a fifth less at random, so that instances do not probe in step. */
const growDelay = (range: { readonly first: number; readonly most: number }, nth: number, random: number): number =>
  Math.min(range.most, range.first * 2 ** (nth - 1)) * (nth === 1 ? 1 : 1 - random * 0.2)

const everyMillis = 60_000

class LogLimit {
  #loggedAt = Number.NEGATIVE_INFINITY
  #omitted = 0

  /** The number of lines left out; undefined where this one is too. */
  enter(now: number): number | undefined {
    if (now - this.#loggedAt < everyMillis) {
      this.#omitted += 1
      return undefined
    }
    const omitted = this.#omitted
    this.#loggedAt = now
    this.#omitted = 0
    return omitted
  }
}

/** Times are on the monotonic clock. */
export class CircuitBreaker {
  readonly route: string
  readonly provider: string
  readonly model: string
  requests = 0
  failures = 0
  lastError: string | undefined
  lastErrorAt: number | undefined
  latencyMs: number | undefined
  openUntil: number | undefined

  readonly failureLog = new LogLimit()
  /** The circuits of the model's routes, including this one. */
  siblings: ReadonlyArray<CircuitBreaker> = [this]
  readonly #disabledRoutes: ReadonlySet<string>
  #epoch = 0
  #consecutive = 0
  #openings = 0
  #accountOpenings = 0
  #accountAtFault = false
  #openedAt = 0
  #probe: { readonly permit: Permit; readonly since: number } | undefined

  /** `disabledRoutes` may change at any time. */
  constructor(
    names: { readonly route: string; readonly provider: string; readonly model: string },
    disabledRoutes: ReadonlySet<string>
  ) {
    this.route = names.route
    this.provider = names.provider
    this.model = names.model
    this.#disabledRoutes = disabledRoutes
  }

  state(now: number): CircuitState {
    if (this.openUntil === undefined) return "closed"
    return now < this.openUntil ? "open" : "half_open"
  }

  enter(now: number): Permit | undefined {
    if (!this.#letsThrough(now)) return undefined
    const permit = { epoch: this.#epoch }
    if (this.openUntil !== undefined) this.#probe = { permit, since: now }
    this.requests += 1
    return permit
  }

  measure(ms: number): void {
    this.latencyMs = this.latencyMs === undefined ? ms : this.latencyMs + latencyWeight * (ms - this.latencyMs)
  }

  succeed(permit: Permit): void {
    if (permit.epoch !== this.#epoch) return
    this.#consecutive = 0
    if (this.openUntil !== undefined) this.#close()
  }

  /** Requests in flight no longer count. */
  reset(): void {
    this.#consecutive = 0
    this.failures = 0
    this.lastError = undefined
    this.lastErrorAt = undefined
    this.#close()
  }

  /** Returns whether it opened the circuit, which was closed; `random` is in [0, 1). */
  fail(permit: Permit, failure: ProviderFailure, now: number, random: number): boolean {
    this.failures += 1
    this.lastError = describeFailure(failure)
    this.lastErrorAt = now
    const account = failure.class === "account"
    const retryAfter = Math.min((failure.retryAfterSeconds ?? 0) * second, accountOpening.most)
    if (permit.epoch !== this.#epoch) {
      this.#failLate(account, retryAfter, now, random)
      return false
    }
    this.#consecutive += 1
    const probing = this.openUntil !== undefined
    if (probing || account || retryAfter > 0 || this.#consecutive >= failuresToOpen) {
      this.#open(account, retryAfter, now, random)
    }
    return !probing && this.openUntil !== undefined
  }

  leave(permit: Permit): void {
    if (this.#probe?.permit === permit) this.#probe = undefined
  }

  #close(): void {
    this.#epoch += 1
    this.openUntil = undefined
    this.#probe = undefined
    this.#openings = 0
    this.#accountOpenings = 0
    this.#accountAtFault = false
  }

  /** Failures of requests begun before the circuit opened may not double its time again, only raise it. */
  #failLate(account: boolean, retryAfter: number, now: number, random: number): void {
    if (this.openUntil === undefined) return
    if (account && !this.#accountAtFault) this.#open(true, retryAfter, now, random)
    else if (this.#hasAlternative(now)) this.openUntil = Math.max(this.openUntil, now + retryAfter)
  }

  #open(account: boolean, retryAfter: number, now: number, random: number): void {
    this.#epoch += 1
    this.#consecutive = 0
    this.#probe = undefined
    this.#openings += 1
    if (account) this.#accountOpenings += 1
    this.#accountAtFault = account
    const time = account
      ? growDelay(accountOpening, this.#accountOpenings, random)
      : growDelay(opening, this.#openings, random)
    this.#openedAt = now
    this.openUntil = now + Math.max(time, retryAfter)
    this.spareLastRoute(now)
  }

  /** Without any route a model refuses everything, so the one that opened last comes back soon. */
  spareLastRoute(now: number): void {
    if (this.siblings.some((sibling) => sibling.#isFree(now))) return
    const last = this.#mayBeSpared() ? this : this.#lastOpenedSibling()
    if (last?.openUntil === undefined) return
    last.openUntil = Math.min(last.openUntil, last.#openedAt + lastRouteMost)
  }

  #mayBeSpared(): boolean {
    return !this.#accountAtFault && !this.#isDisabled()
  }

  #lastOpenedSibling(): CircuitBreaker | undefined {
    return this.siblings
      .filter((sibling) => sibling.#mayBeSpared())
      .toSorted((a, b) => a.#openedAt - b.#openedAt)
      .at(-1)
  }

  #letsThrough(now: number): boolean {
    if (this.#isFree(now)) return true
    if (this.#isDisabled()) return false
    if (this.#probe === undefined || this.state(now) === "open") return false
    // A probe may take minutes; other requests do not wait for as long.
    const lease = this.#hasAlternative(now) ? probeLease : lastRouteMost
    return now >= this.#probe.since + lease
  }

  #isDisabled(): boolean {
    return this.#disabledRoutes.has(this.route)
  }

  #isFree(now: number): boolean {
    if (this.#isDisabled()) return false
    return this.state(now) === "closed" || (this.state(now) === "half_open" && this.#probe === undefined)
  }

  #hasAlternative(now: number): boolean {
    return this.siblings.some((sibling) => sibling !== this && sibling.#isFree(now))
  }
}
