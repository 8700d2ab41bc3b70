import type { ChatEvent } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"

export interface Received {
  readonly route: Route
  readonly events: ReadonlyArray<ChatEvent>
}

/** One try of one route, as the request log shows it. */
export interface AttemptEntry {
  readonly route: string
  readonly provider: string
  /** `ok`, the class of the failure, `skipped` by an open circuit, or `cancelled` by us. */
  readonly outcome: string
  readonly status: number | undefined
  /** Until the answer, a stream's first delta, or the failure. */
  readonly ms: number
  /** What the provider charges for a try that failed, in nano-USD; undefined where that is nothing, or not known. */
  readonly cost?: bigint | undefined
  readonly detail?: string
  /** Of a stream that was cancelled after its provider's first event: a client that leaves then pays for the prompt. */
  readonly received?: Received
}

/** Filled while a request is routed, so that the log has it however the request ends. */
export class Attempts {
  readonly #list: Array<AttemptEntry> = []

  get list(): ReadonlyArray<AttemptEntry> {
    return this.#list
  }

  /** Adds an attempt and returns its position, so that a stream's can be replaced when it breaks later. */
  add(attempt: AttemptEntry): number {
    return this.#list.push(attempt) - 1
  }

  replace(position: number, attempt: AttemptEntry): void {
    this.#list[position] = attempt
  }

  /** Sets what the last one costs, in nano-USD, although nothing came of it. */
  spend(cost: bigint): void {
    const last = this.#list.pop()
    if (last !== undefined) this.#list.push({ ...last, cost })
  }
}
