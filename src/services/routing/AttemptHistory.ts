import type { ChatEvent } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { SpanParent } from "../tracing/Tracing.ts"

export interface Received {
  readonly route: Route
  readonly events: ReadonlyArray<ChatEvent>
}

export interface AttemptEntry {
  readonly route: string
  readonly provider: string
  /** `ok`, the failure's class, `skipped` by an open circuit, or `cancelled` by us. */
  readonly outcome: string
  readonly status: number | undefined
  /** Until the answer, a stream's first delta, or the failure. */
  readonly ms: number
  /** Cost of a failed attempt in nano-USD; undefined: none, or unknown. */
  readonly cost?: bigint | undefined
  /** What the provider says that a failed attempt costs. */
  readonly statedCost?: bigint | undefined
  readonly detail?: string
  /** For the operator only: the provider's support can find the request by it. */
  readonly providerRequestId?: string | undefined
  /** Set when a stream is cancelled after its first event: a client that leaves then pays for the prompt. */
  readonly received?: Received
}

/** Filled while routing, so that the log has it however the request ends. */
export class AttemptHistory {
  /** Whose request it is. */
  readonly org: OrgId
  /** Parent of the attempts' spans; undefined without a trace. */
  readonly trace: SpanParent | undefined
  /** The id of the route that has the conversation's prompt cache. */
  preferredRoute: string | undefined
  readonly #list: Array<AttemptEntry> = []

  constructor(org: OrgId, trace?: SpanParent) {
    this.org = org
    this.trace = trace
  }

  get list(): ReadonlyArray<AttemptEntry> {
    return this.#list
  }

  /** Returns its index, to replace a stream's entry that breaks later. */
  add(attempt: AttemptEntry): number {
    return this.#list.push(attempt) - 1
  }

  replace(position: number, attempt: AttemptEntry): void {
    this.#list[position] = attempt
  }

  spend(cost: bigint): void {
    this.#addToLast({ cost })
  }

  /** What the provider says that the last attempt costs, which has failed. */
  state(statedCost: bigint | undefined): void {
    if (statedCost !== undefined) this.#addToLast({ statedCost })
  }

  #addToLast(costs: Pick<AttemptEntry, "cost" | "statedCost">): void {
    const last = this.#list.pop()
    if (last !== undefined) this.#list.push({ ...last, ...costs })
  }
}
