import type { OrgId } from "../../domain/Organization.ts"
import { LogLimit } from "../runtime/EventLoop.ts"
import { accountOpeningMillis, Circuit, type CircuitState, type Epoch, type Opening, type Permit } from "./Circuit.ts"
import { mayDependOnRequest, type ProviderFailure } from "./Provider.ts"

/** Limits the circuits of organizations. Those that failed least recently are dropped first. */
const maxOrganizations = 1000
const retentionMillis = 600_000

/** The circuits of single organizations with recent failures. */
class OrganizationCircuits {
  readonly #epoch: Epoch
  /** Ordered by the time of the last failure. */
  readonly #circuits = new Map<OrgId, Circuit>()
  #resetEpoch = 0

  constructor(epoch: Epoch) {
    this.#epoch = epoch
  }

  /** Returns the circuit of the organization; undefined if it is closed and had no recent failure. */
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
    let openCount = 0
    for (const circuit of this.#circuits.values()) if (circuit.state(now) !== "closed") openCount += 1
    return openCount
  }

  #forget(now: number): void {
    for (const [org, { failedAt, openUntil = failedAt }] of this.#circuits) {
      if (this.#circuits.size <= maxOrganizations && now <= Math.max(failedAt, openUntil) + retentionMillis) return
      this.#circuits.delete(org)
    }
  }
}

const second = 1000
const maxLastRouteMillis = 5 * second
const probeLeaseMillis = 60 * second
const latencyWeight = 0.2
const maxErrorLength = 300

const describeFailure = ({ class: kind, detail, status }: ProviderFailure) =>
  `${kind} ${status ?? "-"}: ${detail}`.slice(0, maxErrorLength).replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")

/** `org` is undefined if the circuit opened for all organizations. */
export interface OpenedCircuit {
  readonly org: OrgId | undefined
  readonly until: number
}

/** The circuits of a route: one for all, and one for each organization whose requests may have caused failures. */
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
  readonly #orgCircuits = new OrganizationCircuits(this.#epoch)

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

  /** When the circuit for all organizations may close, on the monotonic clock. */
  get openUntil(): number | undefined {
    return this.#all.openUntil
  }

  /** Returns the state of the circuit for all organizations. */
  state(now: number): CircuitState {
    return this.#all.state(now)
  }

  /** Returns the number of organizations whose circuit is not closed. */
  openForOrganizations(now: number): number {
    return this.#orgCircuits.countOpen(now)
  }

  enter(now: number, org: OrgId): Permit | undefined {
    if (!this.#isAvailable(now, org) && !this.#canProbe(now, org)) return undefined
    const permit = { epoch: this.#epoch.current, org }
    this.#all.enter(permit, now)
    this.#orgCircuits.of(org)?.enter(permit, now)
    this.requests += 1
    return permit
  }

  measure(ms: number): void {
    this.latencyMs = this.latencyMs === undefined ? ms : this.latencyMs + latencyWeight * (ms - this.latencyMs)
  }

  succeed(permit: Permit): void {
    this.#all.succeed(permit)
    this.#orgCircuits.of(permit.org)?.succeed(permit)
  }

  /** Closes all circuits. Outcomes of requests in flight no longer count. */
  reset(): void {
    this.failures = 0
    this.lastError = undefined
    this.lastErrorAt = undefined
    this.#all.close()
    this.#orgCircuits.reset()
  }

  /** Returns the circuit that this failure opened, if it was closed before. `random` is in [0, 1). */
  fail(
    permit: Permit,
    failure: ProviderFailure,
    now: number,
    random: number,
    isRequestDependent = mayDependOnRequest(failure)
  ): OpenedCircuit | undefined {
    this.failures += 1
    this.lastError = describeFailure(failure)
    this.lastErrorAt = now
    const isAccountAtFault = failure.class === "account"
    const retryAfterMillis = Math.min((failure.retryAfterSeconds ?? 0) * second, accountOpeningMillis.max)
    const opening = { isAccountAtFault, retryAfterMillis, now, random }
    const isProbe = this.#all.openUntil !== undefined && this.#all.isCurrent(permit)
    const openedForAll = this.#failForAll(permit, opening, isRequestDependent)
    if (isRequestDependent) {
      const openedForOrg = this.#failForOne(permit, opening, isProbe)
      return openedForAll ?? openedForOrg
    }
    this.#orgCircuits.of(permit.org)?.leave(permit)
    return openedForAll
  }

  leave(permit: Permit): void {
    this.#all.leave(permit)
    this.#orgCircuits.of(permit.org)?.leave(permit)
  }

  /** If no route of the model is available, shortens the opening of the route that opened last. */
  shortenLastOpening(now: number): void {
    if (this.siblings.some((sibling) => sibling.#isAvailableForAll(now))) return
    const last = this.#canShortenOpening() ? this : this.#lastOpenedSibling()
    if (last !== undefined) last.#all.limit(maxLastRouteMillis)
  }

  #failForAll(permit: Permit, opening: Opening, isRequestDependent: boolean): OpenedCircuit | undefined {
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

  /** Failures of requests that began before the circuit opened do not double its delay. They may extend it. */
  #failLate(opening: Opening): void {
    const { isAccountAtFault, now, retryAfterMillis } = opening
    if (this.#all.openUntil === undefined) return
    if (isAccountAtFault && !this.#all.isAccountAtFault) this.#openForAll(opening)
    else if (this.#hasAlternative((sibling) => sibling.#isAvailableForAll(now)))
      this.#all.extend(now + retryAfterMillis)
  }

  #openForAll(opening: Opening): void {
    this.#all.open(opening)
    this.shortenLastOpening(opening.now)
  }

  /**
   * If a probe of the circuit for all organizations fails, this opens the circuit of the probing organization. The next
   * probe then comes from another organization.
   */
  #failForOne(permit: Permit, opening: Opening, isProbeForAll: boolean): OpenedCircuit | undefined {
    const { now, retryAfterMillis } = opening
    const { org } = permit
    const orgCircuit = this.#orgCircuits.fail(org, now)
    if (!orgCircuit.isCurrent(permit)) {
      if (this.#hasAlternative((sibling) => sibling.#isAvailable(now, org))) orgCircuit.extend(now + retryAfterMillis)
      return undefined
    }
    const isProbe = orgCircuit.openUntil !== undefined
    orgCircuit.streak.add(org, true)
    if (!orgCircuit.streak.hasReachedThreshold(isProbe || isProbeForAll || retryAfterMillis > 0)) return undefined
    orgCircuit.open(opening)
    return isProbe || orgCircuit.openUntil === undefined ? undefined : { org, until: orgCircuit.openUntil }
  }

  #canShortenOpening(): boolean {
    return !this.#all.isAccountAtFault && !this.#isDisabled()
  }

  #lastOpenedSibling(): CircuitBreaker | undefined {
    return this.siblings
      .filter((sibling) => sibling.#canShortenOpening())
      .toSorted((a, b) => a.#all.openedAt - b.#all.openedAt)
      .at(-1)
  }

  /**
   * Returns whether the request may be a probe. A second probe may follow after the lease, because a probe may take
   * minutes.
   */
  #canProbe(now: number, org: OrgId): boolean {
    if (this.#isDisabled()) return false
    const orgCircuit = this.#orgCircuits.of(org)
    const isLast = !this.#hasAlternative((sibling) => sibling.#isAvailable(now, org))
    if (isLast) orgCircuit?.limit(maxLastRouteMillis)
    const lease = isLast ? maxLastRouteMillis : probeLeaseMillis
    return this.#all.canEnter(now, lease) && orgCircuit?.canEnter(now, lease) !== false
  }

  #isDisabled(): boolean {
    return this.#disabledRoutes.has(this.route)
  }

  #isAvailableForAll(now: number): boolean {
    return !this.#isDisabled() && this.#all.isAvailable(now)
  }

  #isAvailable(now: number, org: OrgId): boolean {
    return this.#isAvailableForAll(now) && this.#orgCircuits.of(org)?.isAvailable(now) !== false
  }

  #hasAlternative(isAvailable: (sibling: CircuitBreaker) => boolean): boolean {
    return this.siblings.some((sibling) => sibling !== this && isAvailable(sibling))
  }
}
