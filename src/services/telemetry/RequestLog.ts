import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Context, Duration, Effect, Layer, Metric, Queue, Schema, type Scope, Struct } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { pluralize } from "../../domain/Plural.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { columnNames, type RequestColumn, requestColumns, toFields } from "../requests/RequestColumns.ts"
import { type RequestEntry, toRow } from "../requests/RequestEntry.ts"
import { TextOrNull, UnixSeconds } from "../resources/Record.ts"
import { outboxRetries } from "../runtime/Schedules.ts"
import { isRefusal } from "../sql/Outage.ts"
import { equals, inTimeRange, recordsOf, rowsOf } from "../sql/Statement.ts"
import { listRequests, type RequestPage, type RequestQuery } from "./RequestListing.ts"

interface FailureQuery {
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The requests that ended with one status and code. */
export const FailureCount = Schema.Struct({
  status: Schema.Number,
  code: TextOrNull,
  requests: Schema.Number,
  last_at: UnixSeconds
}).annotations({ identifier: "FailureCount" })
export type FailureCount = typeof FailureCount.Type

/** Far more than the gateway has codes. */
const maxListed = 100

/** The most frequent first. Streams that broke began with a status 200: an index has them by their code. */
const countFailures = (sql: SqlClient.SqlClient, scope: OrganizationScope, { org, ...range }: FailureQuery) => {
  const asked = [...equals(sql, { org_id: scope.narrow(org) }), ...inTimeRange(sql, "at", range)]
  const rows = sql`SELECT status, code, at FROM request_log`
  return recordsOf(FailureCount)(sql`
    SELECT status, code, count(*)::int AS requests, max(at) AS last_at FROM (
      ${rows} WHERE ${sql.and([...asked, sql`status >= 400`])}
      UNION ALL ${rows} WHERE ${sql.and([...asked, sql`status < 400 AND code = 'stream_error'`])}
    ) AS failed
    GROUP BY status, code ORDER BY requests DESC, last_at DESC LIMIT ${maxListed}`)
}

/** Writes in order and in batches, keeps rows during an outage, and flushes when the scope closes. */
export const makeOutbox = <Row, E>(options: {
  readonly capacity: number
  readonly perBatch: number
  /** Must ignore existing rows: after a failure they come again. */
  readonly write: (rows: Arr.NonEmptyReadonlyArray<Row>) => Effect.Effect<unknown, E>
  /** The row itself is at fault: a retry is of no use. */
  readonly isRefusal: (error: E) => boolean
  readonly lost: (rows: number, why: string) => Effect.Effect<void>
  readonly flushWithin: Duration.DurationInput
  readonly waiting: Metric.Metric.Gauge<number>
}): Effect.Effect<(row: Row) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const waiting: Array<Row> = []
    yield* Metrics.collect(() => options.waiting.unsafeUpdate(waiting.length, []))
    const arrival = yield* Queue.sliding<void>(1)
    const mutex = yield* Effect.makeSemaphore(1)

    const writeOne = (row: Row) =>
      Effect.catchIf(options.write([row]), options.isRefusal, (error) => options.lost(1, String(error)))
    const writeBatch = (batch: Arr.NonEmptyReadonlyArray<Row>) =>
      Effect.catchIf(options.write(batch), options.isRefusal, () => Effect.forEach(batch, writeOne, { discard: true }))

    const flush = Effect.suspend(() => {
      const batch = waiting.slice(0, options.perBatch)
      if (!Arr.isNonEmptyReadonlyArray(batch)) return Effect.succeed(false)
      return Effect.map(writeBatch(batch), () => {
        waiting.splice(0, batch.length)
        return true
      })
    }).pipe(Effect.uninterruptible, mutex.withPermits(1), Effect.repeat({ while: (more) => more }))

    yield* Effect.addFinalizer(() =>
      flush.pipe(
        Effect.retry(outboxRetries),
        Effect.interruptible,
        Effect.timeoutFail({ duration: options.flushWithin, onTimeout: () => "the store was away at the stop" }),
        Effect.catchAll((why) => options.lost(waiting.length, String(why)))
      )
    )
    yield* Queue.take(arrival).pipe(
      Effect.zipRight(Effect.retry(flush, outboxRetries)),
      Effect.zipRight(Effect.sleep("50 millis")),
      Effect.ignore,
      Effect.forever,
      Effect.forkScoped
    )

    return (row) =>
      Effect.suspend(() => {
        if (waiting.length >= options.capacity) return options.lost(1, "too many rows are waiting")
        waiting.push(row)
        return Effect.asVoid(Queue.offer(arrival, undefined))
      })
  })

export class RequestRow extends Schema.Class<RequestRow>("RequestRow")(
  toFields(Struct.omit(requestColumns, "provider"))
) {}

/** What a later entry of a request replaces; its charge, and a job's cost, came with the money. */
const replaced = [
  "status",
  "code",
  "error",
  "notes",
  "attempts",
  "address",
  "user_agent",
  "end_user",
  "tag",
  "preferred_route",
  "provider_request_id",
  "first_byte_ms",
  "total_ms"
] satisfies ReadonlyArray<RequestColumn>

/** One row per authenticated generating request, written in the background and flushed at a normal stop. */
export class RequestLog extends Context.Tag("gateway/RequestLog")<
  RequestLog,
  {
    /** A later entry of a request replaces its outcome, e.g. when its charge was refunded. */
    readonly write: (entry: RequestEntry) => Effect.Effect<void>
    readonly page: (scope: OrganizationScope, query: RequestQuery) => Effect.Effect<RequestPage<RequestRow>>
    /** The rows of a page. */
    readonly list: (scope: OrganizationScope, query: RequestQuery) => Effect.Effect<ReadonlyArray<RequestRow>>
    /** Counts requests that were refused, failed or broke off, by status and code. */
    readonly failures: (scope: OrganizationScope, query: FailureQuery) => Effect.Effect<ReadonlyArray<FailureCount>>
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.scoped(
    RequestLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = rowsOf(RequestRow)
      const columns = sql.literal(columnNames.join(", "))
      const replacements = sql.literal(replaced.map((name) => `${name} = entry.${name}`).join(", "))
      const entriesAsRows = (entries: ReadonlyArray<RequestEntry>) =>
        sql`json_populate_recordset(NULL::request_log, ${JSON.stringify(entries.map(toRow))}::json)`
      const save = Effect.fnUntraced(function* (entries: Arr.NonEmptyReadonlyArray<RequestEntry>) {
        const inserted = yield* sql<{ readonly id: string }>`
          INSERT INTO request_log (${columns}) SELECT ${columns} FROM ${entriesAsRows(entries)}
          ON CONFLICT (id) DO NOTHING RETURNING id`
        if (inserted.length === entries.length) return
        const ids = new Set(inserted.map(({ id }) => id))
        yield* sql`
          UPDATE request_log SET ${replacements}, cost = coalesce(entry.cost, request_log.cost)
          FROM ${entriesAsRows(entries.filter(({ id }) => !ids.has(id)))} AS entry WHERE request_log.id = entry.id`
      })

      const write = yield* makeOutbox<RequestEntry, SqlError.SqlError>({
        capacity: 50_000,
        perBatch: 500,
        write: save,
        isRefusal,
        lost: (rows, why) =>
          Effect.logError(
            `${pluralize(rows, "row of the request log is", "rows of the request log are")} lost: ${why}`
          ).pipe(Effect.zipRight(Metric.incrementBy(Metrics.logDropped, rows))),
        flushWithin: "5 seconds",
        waiting: Metrics.logWaiting
      })

      const page = Effect.fn("RequestLog.page")((scope: OrganizationScope, query: RequestQuery) =>
        listRequests(sql, scope, query, rows)
      )

      return RequestLog.of({
        write,
        page,
        list: (scope, query) => Effect.map(page(scope, query), ({ rows }) => rows),
        failures: Effect.fn("RequestLog.failures")((scope: OrganizationScope, query: FailureQuery) =>
          countFailures(sql, scope, query)
        ),
        prune: Effect.fn("RequestLog.prune")((olderThan: Duration.Duration) => {
          const seconds = Math.floor(Duration.toSeconds(olderThan))
          const before = sql`date_trunc('hour', now() - ${seconds} * interval '1 second', 'UTC')`
          const some = sql`DELETE FROM request_log WHERE id = ANY (ARRAY(
            SELECT id FROM request_log WHERE at < ${before} LIMIT 5000
          )) RETURNING id`
          // Said first: what is there of those hours is compared with nothing from then on.
          return sql`UPDATE usage_bounds SET rows_from = greatest(rows_from, ${before})`.pipe(
            Effect.zipRight(Effect.repeat(some, { while: (removed) => removed.length === 5000 })),
            // No row of these days can change any more.
            Effect.zipLeft(sql`DELETE FROM usage_tags WHERE day < (${before} AT TIME ZONE 'UTC')::date`),
            Effect.map((removed) => removed.length),
            Effect.orDie
          )
        })
      })
    })
  )
}
