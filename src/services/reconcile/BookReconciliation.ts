import { SqlClient } from "@effect/sql"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { rowsOf } from "../sql/Statement.ts"
import { Usage } from "../telemetry/Usage.ts"
import type { Range } from "../telemetry/UsageRanges.ts"
import { type Book, type BookEntry, type BooksUnreadable, joinSpans, type Span } from "./ProviderBooks.ts"
import {
  type Amounts,
  addAmounts,
  compareWindows,
  isNothing,
  judge,
  type OwnWindow,
  type ReconciledRow,
  snapshotNames,
  unitMillis
} from "./Verdict.ts"

interface OwnAttempt {
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

/** What of the catalog one account of a vendor serves. */
export interface ReconciledAccount {
  /** Names of providers that call with the account. */
  readonly providers: ReadonlySet<string>
  /** Upstream models by route. */
  readonly models: ReadonlyMap<string, string>
}

const pageSize = 2_000

/** Routes that the catalog no longer has still say whose they were. */
const modelOf = ({ models, providers }: ReconciledAccount, route: string | null): string | undefined => {
  if (route === null) return undefined
  const known = models.get(route)
  if (known !== undefined) return known
  const [, model, provider = ""] = /^(.*)@([^@#]+)(?:#\d+)?$/.exec(route) ?? []
  return providers.has(provider) ? model : undefined
}

/** Kept for ever: the totals outlive the rows of the log. */
const ownWindows = Effect.fn("Reconciliation.ownWindows")(function* (
  account: ReconciledAccount,
  unit: "hour" | "day",
  { from, to }: Range
) {
  const { report } = yield* Usage
  const { rows } = yield* report(OrganizationScope.all, { by: unit, thenBy: "route", since: from, until: to })
  return rows.flatMap(({ completionTokens, cost, group, promptTokens, subgroup }): ReadonlyArray<OwnWindow> => {
    const model = modelOf(account, subgroup)
    return group === null || model === undefined
      ? []
      : [{ at: Date.parse(group), model, usd: cost, promptTokens, completionTokens }]
  })
})

// There may be a million: nothing but checks, and names as the statement has them.
const LoggedRequest = Schema.Struct({
  id: Schema.String,
  at: Schema.DateFromSelf,
  route: Schema.NullOr(Schema.String),
  provider: Schema.NullOr(Schema.String),
  provider_request_id: Schema.NullOr(Schema.String),
  attempts: Schema.Array(
    Schema.Struct({
      route: Schema.String,
      provider: Schema.String,
      provider_request_id: Schema.optional(Schema.String),
      cost_nano: Schema.optional(Schema.String)
    })
  ),
  prompt_tokens: Schema.NullOr(Schema.String),
  completion_tokens: Schema.NullOr(Schema.String),
  cost: Schema.NullOr(Schema.String)
})
type LoggedRequest = typeof LoggedRequest.Type

const amountIn = (text: string | null | undefined) => (text === null || text === undefined ? undefined : BigInt(text))
const countIn = (text: string | null) => (text === null ? undefined : Number(text))

const attemptsOf = (account: ReconciledAccount, request: LoggedRequest): ReadonlyArray<OwnAttempt> => {
  const { attempts, provider, route } = request
  const at = request.at.getTime()
  const own: Amounts = {
    usd: amountIn(request.cost),
    promptTokens: countIn(request.prompt_tokens),
    completionTokens: countIn(request.completion_tokens)
  }
  const answered = attempts.findLastIndex((attempt) => attempt.route === route && attempt.cost_nano === undefined)
  const made = attempts.flatMap((attempt, index): ReadonlyArray<OwnAttempt> => {
    const model = modelOf(account, attempt.route)
    if (model === undefined || !account.providers.has(attempt.provider)) return []
    const amounts = index === answered ? own : { usd: amountIn(attempt.cost_nano) }
    return [{ at, model, requestId: attempt.provider_request_id, amounts }]
  })
  const model = modelOf(account, route)
  if (answered >= 0 || model === undefined || provider === null || !account.providers.has(provider)) return made
  return [...made, { at, model, requestId: request.provider_request_id ?? undefined, amounts: own }]
}

/** Each attempt at the account within the range, in the order of its request. */
const ownAttempts = (account: ReconciledAccount, { from, to }: Range) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const names = [...account.providers]
    const readPage = (after: string | undefined) =>
      rowsOf(LoggedRequest)(
        sql`
        SELECT id, at, route, provider, provider_request_id, attempts, prompt_tokens, completion_tokens, cost
        FROM request_log
        WHERE at >= ${new Date(from)} AND at < ${new Date(to)}
          AND ${after === undefined ? sql`true` : sql`(at, id) > ((SELECT at FROM request_log WHERE id = ${after}), ${after}::uuid)`}
          AND (provider IN ${sql.in(names)} OR EXISTS (
            SELECT FROM jsonb_array_elements(attempts) AS attempt WHERE attempt ->> 'provider' IN ${sql.in(names)}
          ))
        ORDER BY at, id LIMIT ${pageSize}`.withoutTransform
      )
    const pages = Stream.paginateEffect(undefined, (after: string | undefined) =>
      Effect.map(readPage(after), (rows) => {
        const last = rows.length < pageSize ? undefined : rows.at(-1)
        return [rows, last === undefined ? Option.none<string>() : Option.some(last.id)] as const
      })
    )
    return yield* Stream.runFold(pages, new Array<OwnAttempt>(), (all, rows) => {
      for (const row of rows) all.push(...attemptsOf(account, row))
      return all
    })
  })

const Bounds = Schema.Tuple(Schema.Struct({ rowsFrom: Schema.NullOr(Schema.DateFromSelf) }))

/** From when on the log has every row; null where none was ever deleted. */
export const rowsKeptFrom = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* Effect.orDie(
    sql`SELECT CASE WHEN isfinite(rows_from) THEN rows_from END AS rows_from FROM usage_bounds`
  )
  const [{ rowsFrom }] = yield* Effect.orDie(Schema.decodeUnknown(Bounds)(found))
  return rowsFrom
})

const day = unitMillis.day
/** What is read and compared at once. */
const stepMillis = { request: day, hour: 7 * day, day: 31 * day } as const

type Rows = Stream.Stream<ReadonlyArray<ReconciledRow>, BooksUnreadable, SqlClient.SqlClient | Usage>

interface Reconciled {
  readonly books: ReadonlyArray<Book>
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
  books,
  onOutside = () => Effect.void,
  onStep = () => Effect.void,
  range,
  tolerance
}: Reconciled) =>
  Stream.unwrap(
    Effect.gen(function* () {
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
