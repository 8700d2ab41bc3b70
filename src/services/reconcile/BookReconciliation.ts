import type { SqlClient } from "@effect/sql"
import { Clock, Effect, Stream } from "effect"
import type { Usage } from "../telemetry/Usage.ts"
import type { Range } from "../telemetry/UsageRanges.ts"
import { ownAttempts, ownWindows, type ReconciledAccount } from "./OwnBooks.ts"
import { type Book, type BooksUnreadable, joinSpans, ProviderBooks, type Span } from "./ProviderBooks.ts"
import { marginMillis, RequestMatcher } from "./RequestMatcher.ts"
import { snapshotNames } from "./SnapshotNames.ts"
import type { ReconciledRow } from "./Verdict.ts"
import { compareWindows, unitMillis } from "./WindowComparison.ts"

const day = unitMillis.day
/** What is read and compared at once. */
const stepMillis = { request: day, hour: 7 * day, day: 31 * day } as const

type Rows = Stream.Stream<ReadonlyArray<ReconciledRow>, BooksUnreadable, SqlClient.SqlClient | Usage>

export interface Reconciled {
  readonly range: Range
  readonly account: ReconciledAccount
  /** In millionths. */
  readonly tolerance: number
  /** Called after each step of a book. */
  readonly onStep?: (book: Book, done: number, all: number) => Effect.Effect<void>
  /** Runs at the end of a book that has entries outside the range. */
  readonly onOutside?: (outside: Span) => Effect.Effect<void>
}

const splitRange = ({ from, to }: Range, step: number): ReadonlyArray<Range> =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => ({
    from: from + index * step,
    to: Math.min(to, from + (index + 1) * step)
  }))

/** Whole windows of the book within the range. */
const wholeRange = ({ from, to }: Range, { unit }: Book): Range => {
  const width = unit === "request" ? unitMillis.hour : unitMillis[unit]
  return { from: Math.ceil(from / width) * width, to: Math.floor(to / width) * width }
}

/** A row for each window and model, or for each call, with its verdict; in the order of time for each book. */
export const reconcileBooks = ({
  account,
  onOutside = () => Effect.void,
  onStep = () => Effect.void,
  range,
  tolerance
}: Reconciled) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const { books } = yield* ProviderBooks
      const now = yield* Clock.currentTimeMillis
      const nameOf = snapshotNames(account.models.values())

      /** `dropped` returns the span of entries that were read but not compared. */
      const reportOutside = (book: Book, read: Range, dropped?: () => Span | undefined): Rows =>
        Stream.execute(
          Effect.suspend(() => {
            if (book.spanOutside === undefined) return Effect.void
            const [unread, left] = [book.spanOutside(read), dropped?.()]
            const outside = unread === undefined ? left : joinSpans(unread, left)
            return outside === undefined ? Effect.void : onOutside(outside)
          })
        )

      const byWindow = (book: Book, unit: "hour" | "day"): Rows => {
        const whole = wholeRange(range, book)
        const steps = splitRange(whole, stepMillis[unit])
        return Stream.fromIterable(steps.entries()).pipe(
          Stream.mapEffect(([index, step]) =>
            Effect.gen(function* () {
              const both = [book.read(step), ownWindows(account, unit, step)] as const
              const [theirs, ours] = yield* Effect.all(both, { concurrency: 2 })
              yield* onStep(book, index + 1, steps.length)
              return compareWindows(ours, theirs, { book, unit, nameOf, tolerance, now })
            })
          ),
          Stream.concat(reportOutside(book, whole))
        )
      }

      const byRequest = (book: Book): Rows => {
        const matcher = new RequestMatcher({ range, nameOf, tolerance, finalAfter: book.finalAfter, now })
        const end = Math.max(range.to, Math.min(range.to + marginMillis, Math.ceil(now / day) * day))
        const read: Range = { from: range.from - marginMillis, to: end }
        const steps = splitRange(read, stepMillis.request)
        return Stream.fromIterable(steps.entries()).pipe(
          Stream.mapEffect(([index, step]) =>
            Effect.gen(function* () {
              const both = [book.read(step), ownAttempts(account, step)] as const
              const [theirs, ours] = yield* Effect.all(both, { concurrency: 2 })
              yield* onStep(book, index + 1, steps.length)
              return matcher.advance(ours, theirs, step.to)
            })
          ),
          Stream.concat(Stream.suspend(() => Stream.succeed(matcher.end()))),
          Stream.concat(reportOutside(book, read, () => matcher.outside))
        )
      }

      return Stream.fromIterable(books).pipe(
        Stream.flatMap((book) => (book.unit === "request" ? byRequest(book) : byWindow(book, book.unit))),
        Stream.filter((rows) => rows.length > 0)
      )
    })
  )
