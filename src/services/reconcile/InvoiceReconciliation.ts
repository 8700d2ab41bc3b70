import { SqlClient } from "@effect/sql"
import { Clock, Effect, Option, Schema, Stream } from "effect"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { inLogSpan, withProviderId } from "../requests/RequestColumns.ts"
import { rowsOf, whenDefined } from "../sql/SqlStatement.ts"
import { type Range, Usage } from "../telemetry/Usage.ts"
import {
  type InvoiceEntry,
  type InvoiceSource,
  type InvoicesUnreadable,
  joinSpans,
  type Span
} from "./ProviderInvoices.ts"
import {
  type Amounts,
  addAmounts,
  compareWindows,
  isZero,
  judge,
  makeModelNames,
  type OwnWindow,
  type ReconciledRow,
  unitMillis
} from "./Verdict.ts"

interface OwnAttempt {
  /** The arrival time of the request, in Unix milliseconds. */
  readonly at: number
  readonly model: string
  /** The provider's request id. */
  readonly requestId: string | undefined
  readonly amounts: Amounts
}

interface Options {
  readonly range: Range
  readonly nameOf: (model: string) => string
  readonly tolerance: number
  /** A call that is not billed this many milliseconds later counts as missing in the invoice. */
  readonly finalAfter: number
  /** Unix milliseconds. */
  readonly now: number
}

/** The log and the invoice may differ by this time, because a vendor may bill a video only when it is completed. */
export const marginMillis = 86_400_000

/** Matches logged calls and invoice entries by the provider's request id. Both must be added in order of time. */
export class RequestMatcher {
  readonly #options: Options
  readonly #ours = new Map<string, OwnAttempt>()
  readonly #theirs = new Map<string, InvoiceEntry>()
  /** The times of the invoice entries, by key. Used to find duplicates. */
  readonly #entryTimes = new Map<string, number>()
  #outside: Span | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** Adds all calls and entries before `until`. Returns the rows whose verdict can no longer change. */
  advance(ours: Iterable<OwnAttempt>, theirs: Iterable<InvoiceEntry>, until: number): ReadonlyArray<ReconciledRow> {
    const rows: Array<ReconciledRow | undefined> = []
    for (const attempt of ours) {
      const { requestId } = attempt
      if (requestId === undefined) rows.push(this.#toOursOnly(attempt))
      else {
        const first = this.#ours.get(requestId)
        const amounts = first === undefined ? attempt.amounts : addAmounts(first.amounts, attempt.amounts)
        this.#ours.set(requestId, { ...(first ?? attempt), amounts })
      }
    }
    for (const entry of theirs) {
      const { requestId } = entry
      if (requestId === undefined || this.#entryTimes.has(entry.key)) rows.push(this.#toTheirsOnly(entry))
      else this.#theirs.set(requestId, entry)
      this.#entryTimes.set(entry.key, entry.at)
    }
    for (const [requestId, entry] of this.#theirs) {
      const attempt = this.#ours.get(requestId)
      if (attempt === undefined) continue
      rows.push(this.#toMatchedRow(attempt, entry))
      this.#ours.delete(requestId)
      this.#theirs.delete(requestId)
    }
    for (const row of this.#expire(until - marginMillis)) rows.push(row)
    return rows
      .filter((row) => row !== undefined)
      .toSorted((a, b) => a.at - b.at || ((a.requestId ?? "") < (b.requestId ?? "") ? -1 : 1))
  }

  /** The span of the entries outside the range. */
  get outside(): Span | undefined {
    return this.#outside
  }

  /** Returns the rows of calls and entries that remain without a match. */
  end(): ReadonlyArray<ReconciledRow> {
    return this.advance([], [], Number.POSITIVE_INFINITY)
  }

  *#expire(before: number): Generator<ReconciledRow | undefined> {
    for (const [requestId, attempt] of this.#ours) {
      if (attempt.at >= before) continue
      yield this.#toOursOnly(attempt)
      this.#ours.delete(requestId)
    }
    for (const [requestId, entry] of this.#theirs) {
      if (entry.at >= before) continue
      yield this.#toTheirsOnly(entry)
      this.#theirs.delete(requestId)
    }
    for (const [key, at] of this.#entryTimes) if (at < before) this.#entryTimes.delete(key)
  }

  #toMatchedRow(attempt: OwnAttempt, entry: InvoiceEntry): ReconciledRow | undefined {
    // A failed call, or one without a cost in the catalog, counts as 0 USD: the provider may bill it nevertheless.
    return this.#row(attempt, { ...attempt.amounts, usd: attempt.amounts.usd ?? 0n }, entry, true)
  }

  #toOursOnly(attempt: OwnAttempt): ReconciledRow | undefined {
    // The provider does not bill a failed call without a cost, so no entry is expected.
    if (isZero(attempt.amounts)) return undefined
    return this.#row(attempt, attempt.amounts, undefined, attempt.at + this.#options.finalAfter <= this.#options.now)
  }

  #toTheirsOnly(entry: InvoiceEntry): ReconciledRow | undefined {
    return isZero(entry) ? undefined : this.#row(entry, undefined, entry, true)
  }

  #row(
    { at, model, requestId }: Pick<OwnAttempt, "at" | "model"> & { readonly requestId?: string | undefined },
    ours: Amounts | undefined,
    theirs: InvoiceEntry | undefined,
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

/** The providers and routes of the catalog that use one account of a vendor. */
export interface ReconciledAccount {
  /** The names of the providers that use the account. */
  readonly providers: ReadonlySet<string>
  /** The vendor's model name by route id. */
  readonly models: ReadonlyMap<string, string>
}

const pageSize = 2_000

/** If the catalog no longer has the route, takes the model and the provider from the route's id. */
const modelOf = ({ models, providers }: ReconciledAccount, route: string | null): string | undefined => {
  if (route === null) return undefined
  const current = models.get(route)
  if (current !== undefined) return current
  const [, model, provider = ""] = /^(.*)@([^@#]+)(?:#\d+)?$/.exec(route) ?? []
  return providers.has(provider) ? model : undefined
}

/** Reads usage totals and not the log, because log rows of these hours may be deleted. */
const readOwnWindows = Effect.fn("Reconciliation.ownWindows")(function* (
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

// The fields keep their SQL names, because renaming them in a million rows would take long.
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

const toAmount = (text: string | null | undefined) => (text === null || text === undefined ? undefined : BigInt(text))
const toCount = (text: string | null) => (text === null ? undefined : Number(text))

const attemptsOf = (account: ReconciledAccount, request: LoggedRequest): ReadonlyArray<OwnAttempt> => {
  const { provider, route } = request
  const attempts = withProviderId("provider_request_id", request.attempts, request.provider_request_id)
  const at = request.at.getTime()
  const ownAmounts: Amounts = {
    usd: toAmount(request.cost),
    promptTokens: toCount(request.prompt_tokens),
    completionTokens: toCount(request.completion_tokens)
  }
  const answerIndex = attempts.findLastIndex((attempt) => attempt.route === route && attempt.cost_nano === undefined)
  const ownAttempts = attempts.flatMap((attempt, index): ReadonlyArray<OwnAttempt> => {
    const model = modelOf(account, attempt.route)
    if (model === undefined || !account.providers.has(attempt.provider)) return []
    const amounts = index === answerIndex ? ownAmounts : { usd: toAmount(attempt.cost_nano) }
    return [{ at, model, requestId: attempt.provider_request_id, amounts }]
  })
  const model = modelOf(account, route)
  if (answerIndex >= 0 || model === undefined || provider === null || !account.providers.has(provider)) {
    return ownAttempts
  }
  return [...ownAttempts, { at, model, requestId: request.provider_request_id ?? undefined, amounts: ownAmounts }]
}

/** Returns the calls to the account within the range, in the order of their requests. */
const readOwnAttempts = (account: ReconciledAccount, { from, to }: Range) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const names = [...account.providers]
    const readPage = (after: string | undefined) =>
      rowsOf(LoggedRequest)(
        sql`
        SELECT id, at, route, provider, provider_request_id, attempts, prompt_tokens, completion_tokens, cost
        FROM request_log
        WHERE ${sql.and([...inLogSpan(sql, { since: from, until: to }), ...whenDefined(after, (id) => sql`id > ${id}::uuid`)])}
          AND (provider IN ${sql.in(names)} OR EXISTS (
            SELECT FROM jsonb_array_elements(attempts) AS attempt WHERE attempt ->> 'provider' IN ${sql.in(names)}
          ))
        ORDER BY id LIMIT ${pageSize}`.withoutTransform
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

/** Returns the time since which the log is complete, or null if no row was ever deleted. */
export const readLogStart = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* Effect.orDie(
    sql`SELECT CASE WHEN isfinite(rows_from) THEN rows_from END AS rows_from FROM usage_bounds`
  )
  const [{ rowsFrom }] = yield* Effect.orDie(Schema.decodeUnknown(Bounds)(rows))
  return rowsFrom
})

const day = unitMillis.day
/** The length of the range that one step reads and compares. */
const stepMillis = { request: day, hour: 7 * day, day: 31 * day } as const

type Rows = Stream.Stream<ReadonlyArray<ReconciledRow>, InvoicesUnreadable, SqlClient.SqlClient | Usage>

interface Reconciliation {
  readonly sources: ReadonlyArray<InvoiceSource>
  readonly range: Range
  readonly account: ReconciledAccount
  /** In millionths. */
  readonly tolerance: number
  /** Called after each step of a source, with the number of completed steps and of all steps. */
  readonly onStep?: (source: InvoiceSource, done: number, all: number) => Effect.Effect<void>
  /** Called at the end of a source, if it has entries outside the range. */
  readonly onOutside?: (outside: Span) => Effect.Effect<void>
}

const splitRange = ({ from, to }: Range, step: number): ReadonlyArray<Range> =>
  Array.from({ length: Math.max(0, Math.ceil((to - from) / step)) }, (_, index) => ({
    from: from + index * step,
    to: Math.min(to, from + (index + 1) * step)
  }))

/** Shrinks the range to whole windows of the source. */
const toWholeWindows = ({ from, to }: Range, { unit }: InvoiceSource): Range => {
  const width = unit === "request" ? unitMillis.hour : unitMillis[unit]
  return { from: Math.ceil(from / width) * width, to: Math.floor(to / width) * width }
}

/** Returns rows with verdicts: one for each window and model, or for each call. The rows of a source are in order of time. */
export const reconcileInvoices = ({
  account,
  onOutside = () => Effect.void,
  onStep = () => Effect.void,
  range,
  sources,
  tolerance
}: Reconciliation) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const nameOf = makeModelNames(account.models.values())

      /**
       * Reports entries outside the range at the end. `spanUncompared` returns the span of those that were read but not
       * compared.
       */
      const reportOutside = (source: InvoiceSource, read: Range, spanUncompared?: () => Span | undefined): Rows =>
        Stream.execute(
          Effect.suspend(() => {
            if (source.spanOutside === undefined) return Effect.void
            const [unread, uncompared] = [source.spanOutside(read), spanUncompared?.()]
            const outside = unread === undefined ? uncompared : joinSpans(unread, uncompared)
            return outside === undefined ? Effect.void : onOutside(outside)
          })
        )

      const byWindow = (source: InvoiceSource, unit: "hour" | "day"): Rows => {
        const windows = toWholeWindows(range, source)
        const steps = splitRange(windows, stepMillis[unit])
        return Stream.fromIterable(steps.entries()).pipe(
          Stream.mapEffect(([index, step]) =>
            Effect.gen(function* () {
              const reads = [source.read(step), readOwnWindows(account, unit, step)] as const
              const [theirs, ours] = yield* Effect.all(reads, { concurrency: 2 })
              yield* onStep(source, index + 1, steps.length)
              return compareWindows(ours, theirs, { source, unit, nameOf, tolerance, now })
            })
          ),
          Stream.concat(reportOutside(source, windows))
        )
      }

      const byRequest = (source: InvoiceSource): Rows => {
        const matcher = new RequestMatcher({ range, nameOf, tolerance, finalAfter: source.finalAfter, now })
        const readEnd = Math.max(range.to, Math.min(range.to + marginMillis, Math.ceil(now / day) * day))
        const read: Range = { from: range.from - marginMillis, to: readEnd }
        const steps = splitRange(read, stepMillis.request)
        return Stream.fromIterable(steps.entries()).pipe(
          Stream.mapEffect(([index, step]) =>
            Effect.gen(function* () {
              const reads = [source.read(step), readOwnAttempts(account, step)] as const
              const [theirs, ours] = yield* Effect.all(reads, { concurrency: 2 })
              yield* onStep(source, index + 1, steps.length)
              return matcher.advance(ours, theirs, step.to)
            })
          ),
          Stream.concat(Stream.suspend(() => Stream.succeed(matcher.end()))),
          Stream.concat(reportOutside(source, read, () => matcher.outside))
        )
      }

      return Stream.fromIterable(sources).pipe(
        Stream.flatMap((source) => (source.unit === "request" ? byRequest(source) : byWindow(source, source.unit))),
        Stream.filter((rows) => rows.length > 0)
      )
    })
  )
