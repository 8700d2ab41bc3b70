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
}

/** Ids of calls and their results in the order of a conversation. Another vendor's ids may be too long, hold other characters, or repeat: a repeated one means its last call. */
export class CallIds<Place> {
  readonly #rule: NameRule
  readonly #taken = new Set<string>()
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
    let attempt = 0
    let own = isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
    while (this.#taken.has(own)) own = replaceId(id, this.#rule, ++attempt)
    this.#taken.add(own)
    const sent: SentCall<Place> = { id: own, result: undefined }
    const before = this.#calls.get(id)
    if (before?.turn === this.#turn) before.sent.push(sent)
    else this.#calls.set(id, { turn: this.#turn, sent: [sent] })
    return sent
  }

  /** The call that a result answers: the first that has none, else the last; the caller sets its `result`. Undefined: there is no such call. */
  answer(id: string): SentCall<Place> | undefined {
    const calls = this.#calls.get(id)
    return calls?.sent.find(({ result }) => result === undefined) ?? calls?.sent.at(-1)
  }

  /** For a result without a call here. */
  fit(id: string): string {
    return isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}
