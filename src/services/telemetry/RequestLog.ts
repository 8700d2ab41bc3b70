import { SqlClient, type SqlError } from "@effect/sql"
import { Array as Arr, Context, Duration, Effect, Layer, Metric, Queue, Schema, type Scope, Struct } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { pluralize } from "../../domain/Wording.ts"
import * as Metrics from "../metrics/Metrics.ts"
import {
  columnNames,
  inLogSpan,
  type RequestColumn,
  requestColumns,
  toFields,
  withProviderId
} from "../requests/RequestColumns.ts"
import { type RequestEntry, toRow } from "../requests/RequestEntry.ts"
import { TextOrNull, UnixSeconds } from "../resources/ResourceRecord.ts"
import { requestLogRetries } from "../runtime/Schedules.ts"
import { isRefusal } from "../sql/Outage.ts"
import { equals, recordsOf, rowsOf } from "../sql/SqlStatement.ts"
import { isUuid, listRequests, type RequestPage, type RequestQuery } from "./RequestListing.ts"

interface FailureQuery {
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** The number of requests that ended with this status and code. */
export const FailureCount = Schema.Struct({
  status: Schema.Number,
  code: TextOrNull,
  requests: Schema.Number,
  last_at: UnixSeconds
}).annotations({ identifier: "FailureCount" })
export type FailureCount = typeof FailureCount.Type

/** Far more than there are combinations of status and code. */
const maxFailureCounts = 100

/**
 * Returns the most frequent first. Lists statuses instead of comparing them, so that the index by status, which excludes 200,
 * is used. Broken streams have status 200, so an index by code finds them.
 */
const countFailures = (sql: SqlClient.SqlClient, scope: OrganizationScope, { org, ...range }: FailureQuery) => {
  const conditions = [...equals(sql, { org_id: scope.narrow(org) }), ...inLogSpan(sql, range)]
  const rows = sql`SELECT status, code, at FROM request_log`
  return recordsOf(FailureCount)(sql`
    SELECT status, code, count(*)::int AS requests, max(at) AS last_at FROM (
      ${rows} WHERE ${sql.and([...conditions, sql`status <> 200`, sql`status = ANY (ARRAY(SELECT generate_series(400, 599)))`])}
      UNION ALL ${rows} WHERE ${sql.and([...conditions, sql`status < 400 AND code = 'stream_error'`])}
    ) AS failed
    GROUP BY status, code ORDER BY requests DESC, last_at DESC LIMIT ${maxFailureCounts}`)
}

/**
 * Returns a queue that writes rows in order and in batches. It buffers rows during an outage and writes them when the scope
 * closes.
 */
export const makeRowBuffer = <Row, E>(options: {
  readonly capacity: number
  readonly perBatch: number
  /** Must ignore rows that exist, because a failed batch is written again. */
  readonly write: (rows: Arr.NonEmptyReadonlyArray<Row>) => Effect.Effect<unknown, E>
  /** Returns whether the error means that a row is invalid. Such a row is dropped and not retried. */
  readonly isRefusal: (error: E) => boolean
  readonly onLoss: (rows: number, reason: string) => Effect.Effect<void>
  readonly flushWithin: Duration.DurationInput
  readonly waiting: Metric.Metric.Gauge<number>
}): Effect.Effect<(row: Row) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const buffer: Array<Row> = []
    yield* Metrics.collect(() => options.waiting.unsafeUpdate(buffer.length, []))
    const arrival = yield* Queue.sliding<void>(1)
    const mutex = yield* Effect.makeSemaphore(1)

    const writeOne = (row: Row) =>
      Effect.catchIf(options.write([row]), options.isRefusal, (error) => options.onLoss(1, String(error)))
    const writeBatch = (batch: Arr.NonEmptyReadonlyArray<Row>) =>
      Effect.catchIf(options.write(batch), options.isRefusal, () => Effect.forEach(batch, writeOne, { discard: true }))

    const flush = Effect.suspend(() => {
      const batch = buffer.slice(0, options.perBatch)
      if (!Arr.isNonEmptyReadonlyArray(batch)) return Effect.succeed(false)
      return Effect.map(writeBatch(batch), () => {
        buffer.splice(0, batch.length)
        return true
      })
    }).pipe(Effect.uninterruptible, mutex.withPermits(1), Effect.repeat({ while: (hasMore) => hasMore }))

    yield* Effect.addFinalizer(() =>
      flush.pipe(
        Effect.retry(requestLogRetries),
        Effect.interruptible,
        Effect.timeoutFail({
          duration: options.flushWithin,
          onTimeout: () => "the database was unreachable at shutdown"
        }),
        Effect.catchAll((reason) => options.onLoss(buffer.length, String(reason)))
      )
    )
    yield* Queue.take(arrival).pipe(
      Effect.zipRight(Effect.retry(flush, requestLogRetries)),
      Effect.zipRight(Effect.sleep("50 millis")),
      Effect.ignore,
      Effect.forever,
      Effect.forkScoped
    )

    return (row) =>
      Effect.suspend(() => {
        if (buffer.length >= options.capacity) return options.onLoss(1, "too many rows are waiting")
        buffer.push(row)
        return Effect.asVoid(Queue.offer(arrival, undefined))
      })
  })

export class RequestRow extends Schema.Class<RequestRow>("RequestRow")(
  toFields(Struct.omit(requestColumns, "provider"))
) {}

/** Copies the provider's request id to the last attempt, because the database stores that id only in a column of the row. */
export const restoreAttempts = (row: RequestRow): RequestRow => {
  const attempts = withProviderId("providerRequestId", row.attempts, row.providerRequestId)
  return attempts === row.attempts ? row : new RequestRow(Struct.evolve(row, { attempts: () => attempts }), true)
}

/**
 * The columns that a later entry of the same request replaces. Charges and the costs of jobs are missing: the ledger writes
 * them.
 */
const replacedColumns = [
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

/**
 * The log of authenticated generation requests, one row each. Rows are written in the background, and before a graceful stop
 * ends.
 */
export class RequestLog extends Context.Tag("gateway/RequestLog")<
  RequestLog,
  {
    /** A second entry of a request replaces its outcome, for example after a refund. */
    readonly write: (entry: RequestEntry) => Effect.Effect<void>
    readonly page: (scope: OrganizationScope, query: RequestQuery) => Effect.Effect<RequestPage<RequestRow>>
    /** Like `page`, without the cursor. */
    readonly list: (scope: OrganizationScope, query: RequestQuery) => Effect.Effect<ReadonlyArray<RequestRow>>
    /** Returns the row with that id, or else the newest rows with that request id, which clients may reuse. */
    readonly findById: (scope: OrganizationScope, id: string, limit: number) => Effect.Effect<ReadonlyArray<RequestRow>>
    /** Counts refused, failed and broken requests by status and code. */
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
      const replacements = sql.literal(replacedColumns.map((name) => `${name} = entry.${name}`).join(", "))
      const entriesAsRows = (entries: ReadonlyArray<RequestEntry>) =>
        sql`json_populate_recordset(NULL::request_log, ${JSON.stringify(entries.map(toRow))}::json)`
      const writeRows = Effect.fnUntraced(function* (entries: Arr.NonEmptyReadonlyArray<RequestEntry>) {
        const inserted = yield* sql<{ readonly id: string }>`
          INSERT INTO request_log (${columns}) SELECT ${columns} FROM ${entriesAsRows(entries)}
          ON CONFLICT (id) DO NOTHING RETURNING id`
        if (inserted.length === entries.length) return
        const ids = new Set(inserted.map(({ id }) => id))
        yield* sql`
          UPDATE request_log SET ${replacements}, cost = coalesce(entry.cost, request_log.cost)
          FROM ${entriesAsRows(entries.filter(({ id }) => !ids.has(id)))} AS entry WHERE request_log.id = entry.id`
      })

      const write = yield* makeRowBuffer<RequestEntry, SqlError.SqlError>({
        capacity: 50_000,
        perBatch: 500,
        write: writeRows,
        isRefusal,
        onLoss: (rows, reason) =>
          Effect.logError(
            `${pluralize(rows, "row of the request log is", "rows of the request log are")} lost: ${reason}`
          ).pipe(Effect.zipRight(Metric.incrementBy(Metrics.logDropped, rows))),
        flushWithin: "5 seconds",
        waiting: Metrics.logWaiting
      })

      const page = Effect.fn("RequestLog.page")((scope: OrganizationScope, query: RequestQuery) =>
        listRequests(sql, scope, query, (selected) =>
          Effect.map(rows(Effect.succeed(selected)), Arr.map(restoreAttempts))
        )
      )

      const list = (scope: OrganizationScope, query: RequestQuery) => Effect.map(page(scope, query), ({ rows }) => rows)

      return RequestLog.of({
        write,
        page,
        list,
        findById: Effect.fnUntraced(function* (scope: OrganizationScope, id: string, limit: number) {
          const ownRow = isUuid(id) ? yield* list(scope, { row: id, limit: 1 }) : []
          return ownRow.length > 0 ? ownRow : yield* list(scope, { id, limit })
        }),
        failures: Effect.fn("RequestLog.failures")((scope: OrganizationScope, query: FailureQuery) =>
          countFailures(sql, scope, query)
        ),
        prune: Effect.fn("RequestLog.prune")((olderThan: Duration.Duration) => {
          const seconds = Math.floor(Duration.toSeconds(olderThan))
          const before = sql`date_trunc('hour', now() - ${seconds} * interval '1 second', 'UTC')`
          const deleteBatch = sql`DELETE FROM request_log WHERE id = ANY (ARRAY(
            SELECT id FROM request_log WHERE id < log_id_limit(${before}) AND at < ${before} ORDER BY id LIMIT 5000
          )) RETURNING id`
          // Moves the bound before rows are deleted, so no report reads hours whose rows are partly deleted.
          return sql`UPDATE usage_bounds SET rows_from = greatest(rows_from, ${before})`.pipe(
            Effect.zipRight(Effect.repeat(deleteBatch, { while: (removed) => removed.length === 5000 })),
            // A day's admitted tags are needed only while its rows can change, and these are deleted.
            Effect.zipLeft(sql`DELETE FROM usage_tags WHERE day < (${before} AT TIME ZONE 'UTC')::date`),
            Effect.map((removed) => removed.length),
            Effect.orDie
          )
        })
      })
    })
  )
}
