import { isFitting, replaceId } from "./ToolNames.ts"
import type { NameRule } from "./WireRules.ts"

/** Stands for the result of a call that the client never answered, which hosts refuse. */
export const noResult = "The call was interrupted and has no result."

export interface SentCall<Place> {
  readonly id: string
  /** Where its result stands; undefined: nothing has answered it. */
  result: Place | undefined
}

interface Calls<Place> {
  readonly turn: number
  readonly sent: Array<SentCall<Place>>
  /** How many of the first ones have results. */
  answered: number
}

/** Ids of calls and their results in the order of a conversation. Another vendor's ids may be too long, hold other characters, or repeat: a repeated one means its last call. */
export class CallIds<Place> {
  readonly #rule: NameRule
  readonly #taken = new Set<string>()
  /** Of repeated ids, the attempt that found a free one: each repeat goes on from there. */
  readonly #attempts = new Map<string, number>()
  readonly #calls = new Map<string, Calls<Place>>()
  #turn = 0

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** The calls that follow are another turn's. */
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

  /** The call that a result answers: the first that has none, else the last; the caller sets its `result`. Undefined: there is no such call. */
  answer(id: string): SentCall<Place> | undefined {
    const calls = this.#calls.get(id)
    if (calls === undefined) return undefined
    while (calls.sent[calls.answered]?.result !== undefined) calls.answered += 1
    return calls.sent[calls.answered] ?? calls.sent.at(-1)
  }

  /** For a result without a call here. */
  fit(id: string): string {
    return isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}
