import type { Range } from "../telemetry/UsageRanges.ts"
import { type BookEntry, joinSpans, type Span } from "./ProviderBooks.ts"
import { type Amounts, addAmounts, isNothing, judge, type ReconciledRow } from "./Verdict.ts"

export interface OwnAttempt {
  /** Unix milliseconds of its request. */
  readonly at: number
  readonly model: string
  /** The provider's. */
  readonly requestId: string | undefined
  readonly amounts: Amounts
}

interface Options {
  readonly range: Range
  readonly nameOf: (model: string) => string
  readonly tolerance: number
  /** Milliseconds after a call until it must be listed. */
  readonly finalAfter: number
  /** Unix milliseconds. */
  readonly now: number
}

/** A vendor bills a render when it is done: the two sides may be so far apart. */
export const marginMillis = 86_400_000

/** Matches calls by the provider's request id as both sides go forward in time. */
export class RequestMatcher {
  readonly #options: Options
  readonly #ours = new Map<string, OwnAttempt>()
  readonly #theirs = new Map<string, BookEntry>()
  readonly #listed = new Map<string, number>()
  #outside: Span | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Takes the calls of both sides before `until`; the rows that are decided. */
  advance(ours: Iterable<OwnAttempt>, theirs: Iterable<BookEntry>, until: number): ReadonlyArray<ReconciledRow> {
    const rows: Array<ReconciledRow | undefined> = []
    for (const attempt of ours) {
      const { requestId } = attempt
      if (requestId === undefined) rows.push(this.#oursOnly(attempt))
      else {
        const known = this.#ours.get(requestId)
        const amounts = known === undefined ? attempt.amounts : addAmounts(known.amounts, attempt.amounts)
        this.#ours.set(requestId, { ...(known ?? attempt), amounts })
      }
    }
    for (const entry of theirs) {
      const { requestId } = entry
      if (requestId === undefined || this.#listed.has(entry.key)) rows.push(this.#theirsOnly(entry))
      else this.#theirs.set(requestId, entry)
      this.#listed.set(entry.key, entry.at)
    }
    for (const [requestId, entry] of this.#theirs) {
      const attempt = this.#ours.get(requestId)
      if (attempt === undefined) continue
      rows.push(this.#both(attempt, entry))
      this.#ours.delete(requestId)
      this.#theirs.delete(requestId)
    }
    for (const row of this.#expire(until - marginMillis)) rows.push(row)
    return rows
      .filter((row) => row !== undefined)
      .toSorted((a, b) => a.at - b.at || ((a.requestId ?? "") < (b.requestId ?? "") ? -1 : 1))
  }

  /** The span of entries whose calls are outside the range. */
  get outside(): Span | undefined {
    return this.#outside
  }

  /** What has no counterpart, once all has been taken. */
  end(): ReadonlyArray<ReconciledRow> {
    return this.advance([], [], Number.POSITIVE_INFINITY)
  }

  *#expire(before: number): Generator<ReconciledRow | undefined> {
    for (const [requestId, attempt] of this.#ours) {
      if (attempt.at >= before) continue
      yield this.#oursOnly(attempt)
      this.#ours.delete(requestId)
    }
    for (const [requestId, entry] of this.#theirs) {
      if (entry.at >= before) continue
      yield this.#theirsOnly(entry)
      this.#theirs.delete(requestId)
    }
    for (const [key, at] of this.#listed) if (at < before) this.#listed.delete(key)
  }

  #both(attempt: OwnAttempt, entry: BookEntry): ReconciledRow | undefined {
    // A call that failed here, or whose cost the catalog does not tell, may be billed all the same.
    return this.#row(attempt, { ...attempt.amounts, usd: attempt.amounts.usd ?? 0n }, entry, true)
  }

  #oursOnly(attempt: OwnAttempt): ReconciledRow | undefined {
    // A failed call without a cost is none that is billed.
    if (isNothing(attempt.amounts)) return undefined
    return this.#row(attempt, attempt.amounts, undefined, attempt.at + this.#options.finalAfter <= this.#options.now)
  }

  #theirsOnly(entry: BookEntry): ReconciledRow | undefined {
    return isNothing(entry) ? undefined : this.#row(entry, undefined, entry, true)
  }

  #row(
    { at, model, requestId }: Pick<OwnAttempt, "at" | "model"> & { readonly requestId?: string | undefined },
    ours: Amounts | undefined,
    theirs: BookEntry | undefined,
    isFinal: boolean
  ): ReconciledRow | undefined {
    const { nameOf, range, tolerance } = this.#options
    if (at < range.from || at >= range.to) {
      if (theirs !== undefined) {
        this.#outside = joinSpans({ rows: 1, first: theirs.at, last: theirs.at }, this.#outside)
      }
      return undefined
    }
    const verdict = judge(ours, theirs, { isFinal, tolerance })
    return { at, model: nameOf(model), requestId: requestId ?? null, ours, theirs, verdict }
  }
}
