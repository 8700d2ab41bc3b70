import { Clock, Effect } from "effect"
import { type PastMoment, toPast } from "../../domain/Moment.ts"
import type { Book } from "../../services/reconcile/ProviderBooks.ts"
import type { Range } from "../../services/telemetry/UsageRanges.ts"
import { CommandFailed } from "../CommandFailed.ts"

const hour = 3_600_000
const widest = ({ books }: { readonly books: ReadonlyArray<Book> }) =>
  books.some(({ unit }) => unit === "day") ? { name: "day", millis: 24 * hour } : { name: "hour", millis: hour }

/**
 * Rounds durations and words such as `today` down to whole windows (days or hours); refuses a time within a window. The
 * default end is that of the last whole window, or of the current one if the period begins with it.
 */
export const readWholePeriod = Effect.fnUntraced(function* (
  given: { readonly since: PastMoment; readonly until: PastMoment | undefined },
  books: ReadonlyArray<Book>
) {
  const { millis, name } = widest({ books })
  const now = yield* Clock.currentTimeMillis
  const toWhole = (option: string, when: PastMoment) => {
    if (!("at" in when)) return Effect.succeed(Math.floor(toPast(when, now) / millis) * millis)
    return when.at % millis === 0
      ? Effect.succeed(when.at)
      : Effect.fail(new CommandFailed({ message: `${option} must be the beginning of a UTC ${name}.`, exitCode: 2 }))
  }
  const from = yield* toWhole("--since", given.since)
  const running = Math.floor(now / millis) * millis
  const end = Math.ceil(now / millis) * millis
  const until = given.until === undefined ? (from < running ? running : end) : yield* toWhole("--until", given.until)
  const range: Range = { from, to: Math.min(until, end) }
  if (range.from < range.to) return range
  const message = `--since must be before --until and in the past; a period is at least one UTC ${name}.`
  return yield* new CommandFailed({ message, exitCode: 2 })
})
