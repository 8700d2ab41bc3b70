import { SqlClient, type SqlError } from "@effect/sql"
import { type Array as Arr, Context, Duration, Effect, Layer, Metric, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { type RequestEntry, toRow } from "../requests/RequestEntry.ts"
import { isRefusal } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import * as Metrics from "./Metrics.ts"
import { listRequests, type RequestQuery } from "./RequestListing.ts"
import * as Outbox from "./RequestLogOutbox.ts"
import { type AddressSearch, checkSearch, type SearchTooLong } from "./RequestSearch.ts"
import { RequestTokens } from "./RequestTokens.ts"

export class RequestRow extends Schema.Class<RequestRow>("RequestRow")({
  id: Schema.String,
  requestId: Schema.String,
  at: Schema.DateFromSelf,
  status: Schema.Number,
  code: Schema.NullOr(Schema.String),
  surface: Schema.String,
  orgId: OrgId,
  keyId: KeyId,
  address: Schema.NullOr(Schema.String),
  userAgent: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  route: Schema.NullOr(Schema.String),
  /** The one that had the conversation's prompt cache. */
  preferredRoute: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  attempts: Schema.Array(
    Schema.Struct({
      route: Schema.String,
      provider: Schema.String,
      outcome: Schema.String,
      status: Schema.optional(Schema.Number),
      ms: Schema.Number,
      detail: Schema.optional(Schema.String),
      providerRequestId: Schema.optional(Schema.String).pipe(Schema.fromKey("provider_request_id")),
      /** What a failed attempt costs, beside the row's own cost. */
      cost: Schema.optional(NanoUsdFromRow).pipe(Schema.fromKey("cost_nano"))
    })
  ),
  /** Of the last attempt that was answered with one. */
  providerRequestId: Schema.NullOr(Schema.String),
  notes: Schema.Array(Schema.String),
  ...RequestTokens,
  holdId: Schema.NullOr(Schema.String),
  charge: NanoUsdFromRow,
  cost: Schema.NullOr(NanoUsdFromRow),
  firstByteMs: Schema.NullOr(Schema.Number),
  totalMs: Schema.Number
}) {}

/** One row per authenticated generating request, written in the background and flushed at a normal stop. */
export class RequestLog extends Context.Tag("gateway/RequestLog")<
  RequestLog,
  {
    /** A later entry of a request replaces its outcome, e.g. when its charge was refunded. */
    readonly write: (entry: RequestEntry) => Effect.Effect<void>
    readonly list: (query: RequestQuery) => Effect.Effect<ReadonlyArray<RequestRow>>
    /** Fails where listing would read far more rows than it lists. */
    readonly checkSearch: (search: AddressSearch) => Effect.Effect<void, SearchTooLong>
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.scoped(
    RequestLog,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = rowsOf(RequestRow)
      const columns = sql.literal(`id, request_id, at, surface, status, code, org_id, key_id, address, user_agent,
        model, route, preferred_route, provider, stream, attempts, provider_request_id, notes, prompt_tokens, completion_tokens,
        cached_tokens, cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, web_searches, hold_id, charge, cost,
        first_byte_ms, total_ms`)
      const entriesAsRows = (entries: ReadonlyArray<RequestEntry>) =>
        sql`json_populate_recordset(NULL::request_log, ${JSON.stringify(entries.map(toRow))}::json)`
      const save = Effect.fnUntraced(function* (entries: Arr.NonEmptyReadonlyArray<RequestEntry>) {
        const inserted = yield* sql<{ readonly id: string }>`
          INSERT INTO request_log (${columns}) SELECT ${columns} FROM ${entriesAsRows(entries)}
          ON CONFLICT (id) DO NOTHING RETURNING id`
        if (inserted.length === entries.length) return
        const ids = new Set(inserted.map(({ id }) => id))
        // Charge, and a job's cost, came with the money.
        yield* sql`
          UPDATE request_log SET status = entry.status, code = entry.code, notes = entry.notes, attempts = entry.attempts,
            address = entry.address, user_agent = entry.user_agent, preferred_route = entry.preferred_route,
            provider_request_id = entry.provider_request_id, cost = coalesce(entry.cost, request_log.cost),
            first_byte_ms = entry.first_byte_ms, total_ms = entry.total_ms
          FROM ${entriesAsRows(entries.filter(({ id }) => !ids.has(id)))} AS entry WHERE request_log.id = entry.id`
      })

      const write = yield* Outbox.make<RequestEntry, SqlError.SqlError>({
        capacity: 50_000,
        perBatch: 500,
        write: save,
        isRefusal,
        lost: (rows, why) =>
          Effect.logError(`${rows} rows of the request log are lost: ${why}`).pipe(
            Effect.zipRight(Metric.incrementBy(Metrics.logDropped, rows))
          ),
        flushWithin: "5 seconds",
        waiting: Metrics.logWaiting
      })

      return RequestLog.of({
        write,
        list: Effect.fn("RequestLog.list")((query: RequestQuery) => rows(listRequests(sql, query))),
        checkSearch: (search) => checkSearch(sql, search),
        prune: Effect.fn("RequestLog.prune")((olderThan: Duration.Duration) => {
          const seconds = Math.floor(Duration.toSeconds(olderThan))
          const before = sql`date_trunc('hour', now() - ${seconds} * interval '1 second', 'UTC')`
          const some = sql`DELETE FROM request_log WHERE id = ANY (ARRAY(
            SELECT id FROM request_log WHERE at < ${before} LIMIT 5000
          )) RETURNING id`
          // Said first: what is there of those hours is compared with nothing from then on.
          return sql`UPDATE usage_bounds SET rows_from = greatest(rows_from, ${before})`.pipe(
            Effect.zipRight(Effect.repeat(some, { while: (removed) => removed.length === 5000 })),
            Effect.map((removed) => removed.length),
            Effect.orDie
          )
        })
      })
    })
  )
}
