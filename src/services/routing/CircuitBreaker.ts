import type { OrgId } from "../../domain/Organization.ts"
import { LogLimit } from "../runtime/LogLimit.ts"
import { accountOpening, Circuit, type CircuitState, type Epoch, type Opening, type Permit } from "./Circuit.ts"
import { mayDependOnRequest, type ProviderFailure } from "./Provider.ts"

/** Kept for the organizations whose requests failed last. */
const maxOrganizations = 1000
const forgetAfter = 600_000

/** A route's circuits of single organizations, as long as their failures are recent. */
class OrganizationCircuits {
  readonly #epoch: Epoch
  /** The one that failed last comes last. */
  readonly #circuits = new Map<OrgId, Circuit>()
  #resetEpoch = 0

  constructor(epoch: Epoch) {
    this.#epoch = epoch
  }

  /** Undefined is as good as closed. */
  of(org: OrgId): Circuit | undefined {
    return this.#circuits.get(org)
  }

  fail(org: OrgId, now: number): Circuit {
    const circuit = this.#circuits.get(org) ?? new Circuit(this.#epoch, this.#resetEpoch)
    circuit.failedAt = now
    this.#circuits.delete(org)
    this.#circuits.set(org, circuit)
    this.#forget(now)
    return circuit
  }

  reset(): void {
    this.#circuits.clear()
    this.#resetEpoch = this.#epoch.current
  }

  countOpen(now: number): number {
    this.#forget(now)
    let open = 0
    for (const circuit of this.#circuits.values()) if (circuit.state(now) !== "closed") open += 1
    return open
  }

  #forget(now: number): void {
    for (const [org, { failedAt, openUntil = failedAt }] of this.#circuits) {
      if (this.#circuits.size <= maxOrganizations && now <= Math.max(failedAt, openUntil) + forgetAfter) return
      this.#circuits.delete(org)
    }
  }
}

const second = 1000
const lastRouteMost = 5 * second
const probeLease = 60 * second
const latencyWeight = 0.2
const longestError = 300

const describeFailure = ({ class: kind, detail, status }: ProviderFailure) =>
  `${kind} ${status ?? "-"}: ${detail}`.slice(0, longestError).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")

/** `org`: for which alone; undefined: for all. */
export interface Opened {
  readonly org: OrgId | undefined
  readonly until: number
}

/** A route's circuits: one for all, and one for each organization whose requests may have made it fail. */
export class CircuitBreaker {
  readonly route: string
  readonly provider: string
  readonly model: string
  requests = 0
  failures = 0
  lastError: string | undefined
  lastErrorAt: number | undefined
  latencyMs: number | undefined

  readonly failureLog = new LogLimit()
  /** The circuits of the model's routes, including this one. */
  siblings: ReadonlyArray<CircuitBreaker> = [this]
  readonly #disabledRoutes: ReadonlySet<string>
  readonly #epoch = { current: 0 }
  readonly #all = new Circuit(this.#epoch, 0)
  readonly #own = new OrganizationCircuits(this.#epoch)

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

  /** For all. */
  get openUntil(): number | undefined {
    return this.#all.openUntil
  }

  /** For all. */
  state(now: number): CircuitState {
    return this.#all.state(now)
  }

  /** How many organizations have a circuit of their own that is not closed. */
  openForOrganizations(now: number): number {
    return this.#own.countOpen(now)
  }

  enter(now: number, org: OrgId): Permit | undefined {
    if (!this.#isFree(now, org) && !this.#letsThrough(now, org)) return undefined
    const permit = { epoch: this.#epoch.current, org }
    this.#all.enter(permit, now)
    this.#own.of(org)?.enter(permit, now)
    this.requests += 1
    return permit
  }

  measure(ms: number): void {
    this.latencyMs = this.latencyMs === undefined ? ms : this.latencyMs + latencyWeight * (ms - this.latencyMs)
  }

  succeed(permit: Permit): void {
    this.#all.succeed(permit)
    this.#own.of(permit.org)?.succeed(permit)
  }

  /** Requests in flight no longer count. */
  reset(): void {
    this.failures = 0
    this.lastError = undefined
    this.lastErrorAt = undefined
    this.#all.close()
    this.#own.reset()
  }

  /** Returns what it opened that was closed; `random` is in [0, 1). */
  fail(
    permit: Permit,
    failure: ProviderFailure,
    now: number,
    random: number,
    isRequestDependent = mayDependOnRequest(failure)
  ): Opened | undefined {
    this.failures += 1
    this.lastError = describeFailure(failure)
    this.lastErrorAt = now
    const isAccountAtFault = failure.class === "account"
    const retryAfterMillis = Math.min((failure.retryAfterSeconds ?? 0) * second, accountOpening.most)
    const opening = { isAccountAtFault, retryAfterMillis, now, random }
    const isProbe = this.#all.openUntil !== undefined && this.#all.isCurrent(permit)
    const forAll = this.#failForAll(permit, opening, isRequestDependent)
    if (isRequestDependent) {
      const forOne = this.#failForOne(permit, opening, isProbe)
      return forAll ?? forOne
    }
    this.#own.of(permit.org)?.leave(permit)
    return forAll
  }

  leave(permit: Permit): void {
    this.#all.leave(permit)
    this.#own.of(permit.org)?.leave(permit)
  }

  /** Without any route a model refuses everything, so the one that opened last comes back soon. */
  spareLastRoute(now: number): void {
    if (this.siblings.some((sibling) => sibling.#isFreeForAll(now))) return
    const last = this.#mayBeSpared() ? this : this.#lastOpenedSibling()
    if (last !== undefined) last.#all.limit(lastRouteMost)
  }

  #failForAll(permit: Permit, opening: Opening, isRequestDependent: boolean): Opened | undefined {
    const all = this.#all
    if (!all.isCurrent(permit)) {
      if (!isRequestDependent) this.#failLate(opening)
      return undefined
    }
    const isProbe = all.openUntil !== undefined
    all.streak.add(permit.org, isRequestDependent)
    if (
      !all.streak.blamesRoute(isRequestDependent, isProbe || opening.isAccountAtFault || opening.retryAfterMillis > 0)
    ) {
      all.leave(permit)
      return undefined
    }
    this.#openForAll(opening)
    return isProbe ? undefined : { org: undefined, until: all.openUntil ?? opening.now }
  }

  /** Failures of requests begun before the circuit opened may not double its time again, only raise it. */
  #failLate(opening: Opening): void {
    const { isAccountAtFault, now, retryAfterMillis } = opening
    if (this.#all.openUntil === undefined) return
    if (isAccountAtFault && !this.#all.isAccountAtFault) this.#openForAll(opening)
    else if (this.#hasAlternative((sibling) => sibling.#isFreeForAll(now))) this.#all.extend(now + retryAfterMillis)
  }

  #openForAll(opening: Opening): void {
    this.#all.open(opening)
    this.spareLastRoute(opening.now)
  }

  /** An organization that fails as the probe for all leaves the next one to others. */
  #failForOne(permit: Permit, opening: Opening, isProbeForAll: boolean): Opened | undefined {
    const { now, retryAfterMillis } = opening
    const { org } = permit
    const own = this.#own.fail(org, now)
    if (!own.isCurrent(permit)) {
      if (this.#hasAlternative((sibling) => sibling.#isFree(now, org))) own.extend(now + retryAfterMillis)
      return undefined
    }
    const isProbe = own.openUntil !== undefined
    own.streak.add(org, true)
    if (!own.streak.isEnough(isProbe || isProbeForAll || retryAfterMillis > 0)) return undefined
    own.open(opening)
    return isProbe || own.openUntil === undefined ? undefined : { org, until: own.openUntil }
  }

  #mayBeSpared(): boolean {
    return !this.#all.isAccountAtFault && !this.#isDisabled()
  }

  #lastOpenedSibling(): CircuitBreaker | undefined {
    return this.siblings
      .filter((sibling) => sibling.#mayBeSpared())
      .toSorted((a, b) => a.#all.openedAt - b.#all.openedAt)
      .at(-1)
  }

  /** A probe may take minutes; other requests do not wait for as long. */
  #letsThrough(now: number, org: OrgId): boolean {
    if (this.#isDisabled()) return false
    const own = this.#own.of(org)
    const isLast = !this.#hasAlternative((sibling) => sibling.#isFree(now, org))
    if (isLast) own?.limit(lastRouteMost)
    const lease = isLast ? lastRouteMost : probeLease
    return this.#all.letsThrough(now, lease) && own?.letsThrough(now, lease) !== false
  }

  #isDisabled(): boolean {
    return this.#disabledRoutes.has(this.route)
  }

  #isFreeForAll(now: number): boolean {
    return !this.#isDisabled() && this.#all.isFree(now)
  }

  #isFree(now: number, org: OrgId): boolean {
    return this.#isFreeForAll(now) && this.#own.of(org)?.isFree(now) !== false
  }

  #hasAlternative(isFree: (sibling: CircuitBreaker) => boolean): boolean {
    return this.siblings.some((sibling) => sibling !== this && isFree(sibling))
  }
}
