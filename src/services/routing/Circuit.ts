import type { OrgId } from "../../domain/Organization.ts"

/** `half_open`: one request may probe, or is probing. */
export type CircuitState = "closed" | "open" | "half_open"

/** Lets one request through; a permit of an earlier `epoch` says nothing about the current circuit. */
export interface Permit {
  readonly epoch: number
  readonly org: OrgId
}

/** Counts how often any circuit of a route has opened or closed. */
export interface Epoch {
  current: number
}

/** `random` is in [0, 1). */
export interface Opening {
  readonly isAccountAtFault: boolean
  readonly retryAfterMillis: number
  readonly now: number
  readonly random: number
}

const second = 1000
const failuresToOpen = 5
const opening = { first: second, most: 60 * second }
export const accountOpening = { first: 300 * second, most: 3600 * second }

/** Doubles; up to a fifth less at random, so that instances do not probe in step. */
const growDelay = (range: { readonly first: number; readonly most: number }, nth: number, random: number): number =>
  Math.min(range.most, range.first * 2 ** (nth - 1)) * (nth === 1 ? 1 : 1 - random * 0.2)

/** Failures without a success between them. */
class FailureStreak {
  #length = 0
  #independent = 0
  #org: OrgId | undefined
  #isOfSeveral = false

  add(org: OrgId, isRequestDependent: boolean): void {
    if (this.#length > 0 && org !== this.#org) this.#isOfSeveral = true
    this.#org = org
    this.#length += 1
    if (!isRequestDependent) this.#independent += 1
  }

  /** No single organization's requests can have caused so many. */
  blamesRoute(isRequestDependent: boolean, isOneEnough: boolean): boolean {
    if (isOneEnough) return !isRequestDependent || this.#isOfSeveral
    return this.#independent >= failuresToOpen || (this.#isOfSeveral && this.#length >= failuresToOpen)
  }

  isEnough(isOneEnough: boolean): boolean {
    return isOneEnough || this.#length >= failuresToOpen
  }
}

/** The circuit of a route, for one organization or for all; times on the monotonic clock. */
export class Circuit {
  openUntil: number | undefined
  openedAt = 0
  failedAt = 0
  isAccountAtFault = false
  streak = new FailureStreak()
  #since: number
  readonly #epoch: Epoch
  #openings = 0
  #accountOpenings = 0
  #probe: { readonly permit: Permit; readonly since: number } | undefined

  constructor(epoch: Epoch, since: number) {
    this.#epoch = epoch
    this.#since = since
  }

  state(now: number): CircuitState {
    if (this.openUntil === undefined) return "closed"
    return now < this.openUntil ? "open" : "half_open"
  }

  isFree(now: number): boolean {
    const state = this.state(now)
    return state === "closed" || (state === "half_open" && this.#probe === undefined)
  }

  /** Whether another request may probe beside one that has taken as long as `leaseMillis`. */
  letsThrough(now: number, leaseMillis: number): boolean {
    if (this.isFree(now)) return true
    return this.#probe !== undefined && this.state(now) !== "open" && now >= this.#probe.since + leaseMillis
  }

  isCurrent(permit: Permit): boolean {
    return permit.epoch >= this.#since
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
    const time = isAccountAtFault
      ? growDelay(accountOpening, this.#accountOpenings, random)
      : growDelay(opening, this.#openings, random)
    this.openedAt = now
    this.openUntil = now + Math.max(time, retryAfterMillis)
  }

  extend(until: number): void {
    if (this.openUntil !== undefined) this.openUntil = Math.max(this.openUntil, until)
  }

  /** Opens no longer than so many milliseconds in all. */
  limit(millis: number): void {
    if (this.openUntil !== undefined) this.openUntil = Math.min(this.openUntil, this.openedAt + millis)
  }

  #change(): void {
    this.#epoch.current += 1
    this.#since = this.#epoch.current
    this.streak = new FailureStreak()
    this.#probe = undefined
  }
}
