import type { ChatEvent } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"

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
  /** For the operator only. */
  readonly detail?: string
}

/** Filled while a request is routed, so that the log has it however the request ends. */
export class Attempts {
  readonly #list: Array<AttemptEntry> = []

  /**
   * The stream being opened and what it has sent up to its first delta; undefined while no provider has sent
   * anything. From a provider's first event on, a client that leaves pays for the prompt.
   */
  underway: { readonly route: Route; readonly events: ReadonlyArray<ChatEvent> } | undefined

  get list(): ReadonlyArray<AttemptEntry> {
    return this.#list
  }

  /** Adds an attempt and says where, so that a stream's can be replaced when it breaks later. */
  add(attempt: AttemptEntry): number {
    return this.#list.push(attempt) - 1
  }

  replace(position: number, attempt: AttemptEntry): void {
    this.#list[position] = attempt
  }

  /** Says what the last one costs, in nano-USD, although nothing came of it. */
  spend(cost: bigint): void {
    const last = this.#list.pop()
    if (last !== undefined) this.#list.push({ ...last, cost })
  }
}
