export const limits = { concurrency: 3, tpm: 100 } as const

export const windowSeconds = 60

export type Command =
  | { readonly do: "admit"; readonly by: number; readonly tokens: number }
  /** At once, over both processes. */
  | { readonly do: "burst"; readonly tokens: ReadonlyArray<number> }
  | { readonly do: "job" }
  | { readonly do: "settle"; readonly hold: number; readonly used: number }
  | { readonly do: "release"; readonly hold: number }
  /** The database's clock moves on for the window. */
  | { readonly do: "step"; readonly seconds: number }

export type Verdict = "held" | "TokensLimited" | "ConcurrencyLimited"

export interface ModelHold {
  readonly tokens: number
  readonly isJob: boolean
  readonly window: number
  isOpen: boolean
}

/** What the limits of one key must do, one command at a time. */
export class LimitsModel {
  readonly holds: Array<ModelHold> = []
  /** Windows so far, the one that runs included. */
  windows = 0
  used = 0
  #age = Number.POSITIVE_INFINITY

  get open(): number {
    return this.holds.filter(({ isOpen }) => isOpen).length
  }

  get isRunning(): boolean {
    return this.#age < windowSeconds
  }

  verdictOf(tokens: number): Verdict {
    const used = this.isRunning ? this.used : 0
    if (used > 0 && used + tokens > limits.tpm) return "TokensLimited"
    return this.verdictOfJob
  }

  get verdictOfJob(): Verdict {
    return this.open < limits.concurrency ? "held" : "ConcurrencyLimited"
  }

  admit(tokens: number): ModelHold {
    if (!this.isRunning) {
      this.windows += 1
      this.used = 0
      this.#age = 0
    }
    this.used += tokens
    const hold = { tokens, isJob: false, window: this.windows, isOpen: true }
    this.holds.push(hold)
    return hold
  }

  admitJob(): void {
    this.holds.push({ tokens: 0, isJob: true, window: 0, isOpen: true })
  }

  close(hold: ModelHold, used: number): void {
    if (!hold.isOpen) return
    hold.isOpen = false
    if (!hold.isJob && this.isRunning && hold.window === this.windows) this.used -= Math.max(0, hold.tokens - used)
  }

  step(seconds: number): void {
    this.#age += seconds
  }
}
