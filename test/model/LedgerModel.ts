import type { CapPeriod } from "../../src/domain/ApiKey.ts"

/** Amounts are nano-USD; organizations, keys, processes and holds go by their number. */
export type Command =
  | { readonly do: "top up"; readonly org: number; readonly amount: number }
  | {
      readonly do: "hold"
      readonly by: number
      readonly key: number
      readonly amount: number
      readonly canReduceHold?: boolean
    }
  /** At once, over both processes. */
  | { readonly do: "burst"; readonly key: number; readonly amounts: ReadonlyArray<number> }
  | { readonly do: "hold for a job"; readonly by: number; readonly key: number; readonly amount: number }
  | { readonly do: "settle"; readonly by: number; readonly hold: number; readonly cost: number }
  | { readonly do: "release"; readonly hold: number }
  | { readonly do: "refund"; readonly by: number; readonly hold: number }
  /** Settles by both processes, a release and a sweep, at once. */
  | { readonly do: "race"; readonly hold: number; readonly costs: readonly [number, number] }
  /** The process goes on under another identity, and its holds are left to be swept. */
  | { readonly do: "crash"; readonly by: number }
  /** The database's clock moves on for those that crashed. */
  | { readonly do: "step"; readonly seconds: number }
  | { readonly do: "sweep" }

export const sweptAfterSeconds = 45

interface Cap {
  readonly amount: bigint
  readonly period: CapPeriod
}

export const orgs: ReadonlyArray<{ readonly balance: bigint; readonly cap?: Cap }> = [
  { balance: 100n, cap: { amount: 45n, period: "week" } },
  { balance: 7n }
]

export const keys: ReadonlyArray<{ readonly org: number; readonly cap: Cap | undefined }> = [
  { org: 0, cap: undefined },
  { org: 0, cap: { amount: 30n, period: "total" } },
  { org: 1, cap: { amount: 20n, period: "month" } }
]

export interface ModelHold {
  readonly key: number
  readonly amount: bigint
  readonly isJob: boolean
  /** The process that made it. */
  readonly by: number
  state: "open" | "settled" | "released"
  charged: bigint
  isRefunded: boolean
  /** Seconds since its process crashed. */
  orphanedFor: number | undefined
}

export type Verdict = "held" | "insufficient" | "key capped" | "organization capped"

/** What the ledger must do, one command at a time. */
export class LedgerModel {
  readonly topUps = orgs.map(() => 0n)
  readonly holds: Array<ModelHold> = []

  #ofOrg(org: number) {
    return this.holds.filter(({ key }) => keys[key]?.org === org)
  }

  #paid(holds: ReadonlyArray<ModelHold>) {
    return holds.reduce((sum, { charged, isRefunded }) => sum + (isRefunded ? 0n : charged), 0n)
  }

  /** What is stored of each organization. */
  get accounts() {
    return orgs.map(({ balance }, org) => {
      const holds = this.#ofOrg(org)
      return {
        balance: balance + (this.topUps[org] ?? 0n) - this.#paid(holds),
        held: holds.reduce((sum, { amount, state }) => sum + (state === "open" ? amount : 0n), 0n)
      }
    })
  }

  /** What is counted for the cap of each organization. */
  get capSpent() {
    return orgs.map(({ cap }, org) => (cap === undefined ? null : this.#paid(this.#ofOrg(org))))
  }

  /** Settled spend of each key. */
  get spent() {
    return keys.map((_, key) => this.#paid(this.holds.filter((hold) => hold.key === key)))
  }

  #reaches(cap: Cap | undefined, holds: ReadonlyArray<ModelHold>): boolean {
    const jobs = holds.filter(({ isJob, state }) => isJob && state === "open")
    return cap !== undefined && cap.amount <= jobs.reduce((sum, { amount }) => sum + amount, this.#paid(holds))
  }

  verdictOf(key: number, amount: bigint, canReduceHold = false): Verdict {
    const { cap, org } = keys[key] ?? { cap: undefined, org: 0 }
    if (
      this.#reaches(
        cap,
        this.holds.filter((hold) => hold.key === key)
      )
    )
      return "key capped"
    if (this.#reaches(orgs[org]?.cap, this.#ofOrg(org))) return "organization capped"
    const account = this.accounts[org] ?? { balance: 0n, held: 0n }
    const available = account.balance - account.held
    const isGreedy = canReduceHold && account.held > 0n && amount > account.balance / 4n
    return available <= 0n || amount > available || isGreedy ? "insufficient" : "held"
  }

  open(key: number, amount: bigint, by: number, isJob: boolean): void {
    this.holds.push({
      key,
      amount,
      by,
      isJob,
      state: "open",
      charged: 0n,
      isRefunded: false,
      orphanedFor: undefined
    })
  }

  /** What the settlement says. */
  settle(hold: ModelHold, cost: bigint) {
    if (hold.state === "open") {
      hold.state = "settled"
      hold.charged = this.cut(hold, Number(cost))
    }
    const wasReleased = hold.state === "released"
    return { charged: hold.charged, isExceeded: !wasReleased && cost > hold.amount, wasReleased }
  }

  release(hold: ModelHold): void {
    if (hold.state === "open") hold.state = "released"
  }

  refund(hold: ModelHold): void {
    this.release(hold)
    hold.isRefunded = true
  }

  topUp(org: number, amount: bigint): void {
    this.topUps[org] = (this.topUps[org] ?? 0n) + amount
  }

  /** What a cost comes to for a hold. */
  cut(hold: ModelHold, cost: number): bigint {
    return BigInt(cost) < hold.amount ? BigInt(cost) : hold.amount
  }

  /** How a race ended, which the model cannot know. */
  adopt(hold: ModelHold, state: ModelHold["state"], charged: bigint): void {
    hold.state = state
    hold.charged = charged
  }

  /** Charges made, whether or not they were given back. */
  chargesOf(org: number): Array<bigint> {
    return this.#ofOrg(org).flatMap(({ charged, state }) => (state === "settled" ? [charged] : []))
  }

  crash(by: number): void {
    for (const hold of this.holds) {
      if (hold.by === by && hold.state === "open" && !hold.isJob) hold.orphanedFor ??= 0
    }
  }

  step(seconds: number): void {
    for (const hold of this.holds) if (hold.orphanedFor !== undefined) hold.orphanedFor += seconds
  }

  sweep(): void {
    for (const hold of this.holds) if ((hold.orphanedFor ?? 0) >= sweptAfterSeconds) this.release(hold)
  }
}
