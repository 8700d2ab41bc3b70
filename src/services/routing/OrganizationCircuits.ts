import type { OrgId } from "../../domain/Organization.ts"
import { Circuit, type Epoch } from "./Circuit.ts"

/** Kept for the organizations whose requests failed last. */
const maxOrganizations = 1000
const forgetAfter = 600_000

/** A route's circuits of single organizations, as long as their failures are recent. */
export class OrganizationCircuits {
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
