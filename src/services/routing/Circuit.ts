import type { OrgId } from "../../domain/Organization.ts"

/** `half_open`: one probe is allowed or running. */
export type CircuitState = "closed" | "open" | "half_open"

/** Permission for one request. The circuit ignores the outcome of a permit from an earlier `epoch`. */
export interface Permit {
  readonly epoch: number
  readonly org: OrgId
}

/** Counts the openings and closings of all circuits of a route. */
export interface Epoch {
  current: number
}

/** What determines how long a circuit opens. `random` is in [0, 1). */
export interface Opening {
  readonly isAccountAtFault: boolean
  readonly retryAfterMillis: number
  readonly now: number
  readonly random: number
}

const second = 1000
const failuresToOpen = 5
const openingMillis = { min: second, max: 60 * second }
export const accountOpeningMillis = { min: 300 * second, max: 3600 * second }

/**
 * Returns a delay that doubles with each opening. Random jitter of up to a fifth keeps instances from probing at the
 * same time.
 */
const growDelay = (range: { readonly min: number; readonly max: number }, nth: number, random: number): number =>
  Math.min(range.max, range.min * 2 ** (nth - 1)) * (nth === 1 ? 1 : 1 - random * 0.2)

/** Counts the consecutive failures of a route. */
class FailureStreak {
  #length = 0
  #independentCount = 0
  #org: OrgId | undefined
  #hasSeveralOrgs = false

  add(org: OrgId, isRequestDependent: boolean): void {
    if (this.#length > 0 && org !== this.#org) this.#hasSeveralOrgs = true
    this.#org = org
    this.#length += 1
    if (!isRequestDependent) this.#independentCount += 1
  }

  /** Returns whether the failures cannot come from the requests of a single organization. */
  blamesRoute(isRequestDependent: boolean, opensAtOnce: boolean): boolean {
    if (opensAtOnce) return !isRequestDependent || this.#hasSeveralOrgs
    return this.#independentCount >= failuresToOpen || (this.#hasSeveralOrgs && this.#length >= failuresToOpen)
  }

  hasReachedThreshold(opensAtOnce: boolean): boolean {
    return opensAtOnce || this.#length >= failuresToOpen
  }
}

/** The circuit of a route, for one organization or for all. Times are on the monotonic clock. */
export class Circuit {
  openUntil: number | undefined
  openedAt = 0
  failedAt = 0
  isAccountAtFault = false
  streak = new FailureStreak()
  #sinceEpoch: number
  readonly #epoch: Epoch
  #openings = 0
  #accountOpenings = 0
  #probe: { readonly permit: Permit; readonly since: number } | undefined

  constructor(epoch: Epoch, since: number) {
    this.#epoch = epoch
    this.#sinceEpoch = since
  }

  state(now: number): CircuitState {
    if (this.openUntil === undefined) return "closed"
    return now < this.openUntil ? "open" : "half_open"
  }

  isAvailable(now: number): boolean {
    const state = this.state(now)
    return state === "closed" || (state === "half_open" && this.#probe === undefined)
  }

  /** Returns whether a request may enter. A second probe may enter once the first has run for `leaseMillis`. */
  canEnter(now: number, leaseMillis: number): boolean {
    if (this.isAvailable(now)) return true
    return this.#probe !== undefined && this.state(now) !== "open" && now >= this.#probe.since + leaseMillis
  }

  isCurrent(permit: Permit): boolean {
    return permit.epoch >= this.#sinceEpoch
  }

  enter(permit: Permit, now: number): void {
    if (this.openUntil !== undefined) this.#probe = { permit, since: now }
  }

  leave(permit: Permit): void {
    if (this.#probe?.permit === permit) this.#probe = undefined
  }

  succeed(permit: Permit): void {
    if (!this.isCurrent(permit)) return
    this.streak = new FailureStreak()
    if (this.openUntil !== undefined) this.close()
  }

  close(): void {
    this.#change()
    this.openUntil = undefined
    this.#openings = 0
    this.#accountOpenings = 0
    this.isAccountAtFault = false
  }

  open({ isAccountAtFault, now, random, retryAfterMillis }: Opening): void {
    this.#change()
    this.#openings += 1
    if (isAccountAtFault) this.#accountOpenings += 1
    this.isAccountAtFault = isAccountAtFault
    const delay = isAccountAtFault
      ? growDelay(accountOpeningMillis, this.#accountOpenings, random)
      : growDelay(openingMillis, this.#openings, random)
    this.openedAt = now
    this.openUntil = now + Math.max(delay, retryAfterMillis)
  }

  extend(until: number): void {
    if (this.openUntil !== undefined) this.openUntil = Math.max(this.openUntil, until)
  }

  /** Ends the current opening at most `millis` after its start. */
  limit(millis: number): void {
    if (this.openUntil !== undefined) this.openUntil = Math.min(this.openUntil, this.openedAt + millis)
  }

  #change(): void {
    this.#epoch.current += 1
    this.#sinceEpoch = this.#epoch.current
    this.streak = new FailureStreak()
    this.#probe = undefined
  }
}
