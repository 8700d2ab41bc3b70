import { Data, type Effect } from "effect"
import type { Range } from "../telemetry/Usage.ts"

/** The message contains no secret. */
export class InvoicesUnreadable extends Data.TaggedError("InvoicesUnreadable")<{ readonly message: string }> {}

export interface InvoiceEntry {
  /** Two entries with the same key are duplicates. */
  readonly key: string
  /** Unix milliseconds of the call, or of the start of its window. */
  readonly at: number
  /** The model as the vendor names it. */
  readonly model: string
  readonly requestId?: string | undefined
  /** In nano-USD. */
  readonly usd?: bigint | undefined
  readonly promptTokens?: number | undefined
  readonly completionTokens?: number | undefined
}

/** A number of entries, with the times of the first and the last one in Unix milliseconds. */
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

/** A vendor's record of our calls: sums by model and hour, sums by model and day, or single calls with their request ids. */
export interface InvoiceSource {
  readonly unit: "hour" | "day" | "request"
  readonly states: ReadonlyArray<"tokens" | "usd">
  /** Milliseconds from the end of a window until its sums are final. */
  readonly finalAfter: number
  /** The range must consist of whole units. For hours and calls it must not exceed a week. */
  readonly read: (range: Range) => Effect.Effect<ReadonlyArray<InvoiceEntry>, InvoicesUnreadable>
  /**
   * Returns the span of the entries outside a range of whole hours. Only for sources that are read completely, such as
   * files.
   */
  readonly spanOutside?: (range: Range) => Span | undefined
}
