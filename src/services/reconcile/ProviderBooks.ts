import { Data, type Effect } from "effect"
import type { Range } from "../telemetry/UsageRanges.ts"

/** The message names no secret. */
export class BooksUnreadable extends Data.TaggedError("BooksUnreadable")<{ readonly message: string }> {}

export interface BookEntry {
  /** Equal for what is listed twice. */
  readonly key: string
  /** Unix milliseconds: of the call, or of its window's beginning. */
  readonly at: number
  /** As the vendor names it. */
  readonly model: string
  readonly requestId?: string | undefined
  /** In nano-USD. */
  readonly usd?: bigint | undefined
  readonly promptTokens?: number | undefined
  readonly completionTokens?: number | undefined
}

/** The number of entries, and the times of the first and the last in Unix milliseconds. */
export interface Span {
  readonly rows: number
  readonly first: number
  readonly last: number
}

export const joinSpans = (span: Span, other: Span | undefined): Span =>
  other === undefined
    ? span
    : {
        rows: span.rows + other.rows,
        first: Math.min(span.first, other.first),
        last: Math.max(span.last, other.last)
      }

/** What a vendor lists of its calls: sums by hour or day and model, or each call by its id. */
export interface Book {
  readonly unit: "hour" | "day" | "request"
  readonly states: ReadonlyArray<"tokens" | "usd">
  /** Milliseconds after its end until a window no longer changes. */
  readonly finalAfter: number
  /** The range is of whole units, and of a week of hours or calls at most. */
  readonly read: (range: Range) => Effect.Effect<ReadonlyArray<BookEntry>, BooksUnreadable>
  /** Returns the entries outside a range of whole hours. Only books that do not depend on a range, such as a file, have it. */
  readonly spanOutside?: (range: Range) => Span | undefined
}
