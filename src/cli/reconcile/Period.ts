import { Clock, Effect } from "effect"
import type { Moment } from "../../domain/Moment.ts"
import type { Book } from "../../services/reconcile/ProviderBooks.ts"
import type { Range } from "../../services/telemetry/UsageRanges.ts"
import { CommandFailed } from "../CommandFailed.ts"

const hour = 3_600_000
const widest = ({ books }: { readonly books: ReadonlyArray<Book> }) =>
  books.some(({ unit }) => unit === "day") ? { name: "day", millis: 24 * hour } : { name: "hour", millis: hour }

/** Distances begin and end with whole days or hours; a time that is none is refused. */
export const readWholePeriod = Effect.fnUntraced(function* (
  given: { readonly since: Moment; readonly until: Moment | undefined },
  books: ReadonlyArray<Book>
) {
  const { millis, name } = widest({ books })
  const now = yield* Clock.currentTimeMillis
  const toWhole = (option: string, when: Moment) => {
    if ("distance" in when) return Effect.succeed(Math.floor((now - when.distance) / millis) * millis)
    return when.at % millis === 0
      ? Effect.succeed(when.at)
      : Effect.fail(new CommandFailed({ message: `${option} must be the beginning of a UTC ${name}.`, exitCode: 2 }))
  }
  const from = yield* toWhole("--since", given.since)
  const until = yield* toWhole("--until", given.until ?? { distance: 0 })
  const to = Math.min(until, Math.ceil(now / millis) * millis)
  if (from >= to) {
    const message = `--since must be before --until, and at least a whole UTC ${name} is compared.`
    return yield* new CommandFailed({ message, exitCode: 2 })
  }
  const range: Range = { from, to }
  return range
})
