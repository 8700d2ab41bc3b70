import { isFitting, replaceId } from "./ToolNames.ts"
import type { NameRule } from "./WireRules.ts"

export interface SentCall<Position> {
  readonly id: string
  /** The position of its result; undefined without one. */
  result: Position | undefined
}

interface Calls<Position> {
  readonly turn: number
  readonly sent: Array<SentCall<Position>>
}

/**
 * Ids of calls and their results in the order of a conversation. Another vendor's ids may be too long, hold other
 * characters, or repeat. A repeated one means its last call.
 */
export class CallIds<Position> {
  readonly #rule: NameRule
  readonly #taken = new Set<string>()
  readonly #calls = new Map<string, Calls<Position>>()
  #turn = 0
  #unanswered = 0

  constructor(rule: NameRule) {
    this.#rule = rule
  }

  /** Whether calls of the current turn wait for their results. */
  get isWaiting(): boolean {
    return this.#unanswered > 0
  }

  /** Begins a turn, to which the following calls belong. */
  beginTurn(): void {
    this.#turn += 1
    this.#unanswered = 0
  }

  /** The id to send with a call. It is unique. */
  call(id: string): string {
    let attempt = 0
    let own = isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
    while (this.#taken.has(own)) own = replaceId(id, this.#rule, ++attempt)
    this.#taken.add(own)
    const sent = { id: own, result: undefined }
    const before = this.#calls.get(id)
    if (before?.turn === this.#turn) before.sent.push(sent)
    else this.#calls.set(id, { turn: this.#turn, sent: [sent] })
    this.#unanswered += 1
    return own
  }

  /**
   * The call that a result answers: the first one without a result, else the last one. The caller sets its `result`.
   * Undefined: there is no such call.
   */
  answer(id: string): SentCall<Position> | undefined {
    const calls = this.#calls.get(id)
    const waiting = calls?.sent.find(({ result }) => result === undefined)
    if (waiting !== undefined && calls?.turn === this.#turn) this.#unanswered -= 1
    return waiting ?? calls?.sent.at(-1)
  }

  /** Fits the id of a result without a call. */
  fit(id: string): string {
    return isFitting(id, this.#rule) ? id : replaceId(id, this.#rule)
  }
}
