import { isFitting, replaceId } from "./ToolNames.ts"
import type { NameRule } from "./WireRules.ts"

/** The result of a call that the client never answered: hosts refuse a call without one. */
export const noResult = "The call was interrupted and has no result."

export interface SentCall<Place> {
  readonly id: string
  /** The position of its result; undefined without one. */
  result: Place | undefined
}

interface Calls<Place> {
  readonly turn: number
  readonly sent: Array<SentCall<Place>>
  /** How many of the first ones have results. */
  answered: number
}

/**
 * Ids of calls and their results in the order of a conversation. Another vendor's ids may be too long, hold other
 * characters, or repeat. A repeated one means its last call.
 */
export class CallIds<Place> {
  readonly #rule: NameRule
  readonly #taken = new Set<string>()
  /** By repeated id: the attempt that found a free one, at which the next repeat begins. */
  readonly #attempts = new Map<string, number>()
  readonly #calls = new Map<string, Calls<Place>>()
  #turn = 0

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** Begins a turn, to which the following calls belong. */
  beginTurn(): void {
    this.#turn += 1
  }

  /** A call with the id to send; no two have the same. */
  call(id: string): SentCall<Place> {
    let attempt = this.#attempts.get(id) ?? 0
    let own = attempt === 0 && isFitting(id, this.#rule) ? id : replaceId(id, this.#rule, attempt)
    while (this.#taken.has(own)) own = replaceId(id, this.#rule, ++attempt)
    if (attempt > 0) this.#attempts.set(id, attempt)
    this.#taken.add(own)
    const sent: SentCall<Place> = { id: own, result: undefined }
    const before = this.#calls.get(id)
    if (before?.turn === this.#turn) before.sent.push(sent)
    else this.#calls.set(id, { turn: this.#turn, sent: [sent], answered: 0 })
    return sent
  }

  /**
   * The call that a result answers: the first one without a result, else the last one. The caller sets its `result`.
   * Undefined: there is no such call.
   */
  answer(id: string): SentCall<Place> | undefined {
    const calls = this.#calls.get(id)
    if (calls === undefined) return undefined
    while (calls.sent[calls.answered]?.result !== undefined) calls.answered += 1
    return calls.sent[calls.answered] ?? calls.sent.at(-1)
  }

  /** Fits the id of a result without a call. */
  fit(id: string): string {
    return isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}
