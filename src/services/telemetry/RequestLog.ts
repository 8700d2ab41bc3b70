import { SqlClient, type SqlError } from "@effect/sql"
import { type Array as Arr, Context, Duration, Effect, Layer, Metric, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import type { Usage } from "../../domain/Chat.ts"
import type { Surface } from "../../domain/Model.ts"
import { mostStored, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import { refundsOf } from "../ledger/RefundSql.ts"
import type { AttemptEntry } from "../routing/AttemptHistory.ts"
import { isRefusal } from "../sql/Outage.ts"
import { rowsOf, storable } from "../sql/Statement.ts"
import * as Metrics from "./Metrics.ts"
import * as Outbox from "./RequestLogOutbox.ts"
import { RequestTokens, toColumns } from "./RequestTokens.ts"

/** Without prompts, output and secrets; milliseconds and nano-USD. */
export interface RequestEntry {
  readonly id: string
  readonly requestId: string
  readonly at: number
  readonly surface: Surface
  readonly status: number
  readonly code: string | null
  readonly org: OrgId
  readonly key: KeyId
  readonly address?: string | undefined
  readonly userAgent?: string | undefined
  readonly model: string | undefined
  readonly route: string | undefined
  readonly preferredRoute?: string | undefined
  readonly provider: string | undefined
  readonly stream: boolean
  readonly attempts: ReadonlyArray<AttemptEntry>
  readonly notes: ReadonlyArray<"usage_estimated" | "hold_exceeded" | "hold_lost" | "replayed" | "cap_lowered">
  readonly usage: Usage | undefined
  readonly hold: string | undefined
  readonly charge: bigint
  readonly cost: bigint | undefined
  readonly firstByteMs: number | undefined
  readonly totalMs: number
}

/** `ok`: answered and, if streamed, to its end; `error`: 5xx, or a stream that broke. */
export type StatusFilter = number | "4xx" | "5xx" | "ok" | "error"

export interface RequestQuery {
  readonly org?: OrgId | undefined
  readonly key?: KeyId | undefined
  readonly model?: string | undefined
  readonly route?: string | undefined
  readonly surface?: string | undefined
  readonly code?: string | undefined
  readonly status?: StatusFilter | undefined
  /** The client's request id, or a row's own id. */
  readonly id?: string | undefined
  /** Unix milliseconds. */
  readonly since?: number | undefined
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined
  /** Only rows that are listed after the one with this id. */
  readonly after?: string | undefined
  /** Unix milliseconds. */
  readonly endedSince?: number | undefined
  readonly limit: number
}

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

const toStorable = (text: string | undefined): string | null =>
  text === undefined ? null : storable(text.slice(0, 200))

const withoutControls = (text: string | undefined): string | null =>
  text === undefined ? null : text.replace(/[\p{Cc}\p{Cs}]/gu, "").slice(0, 200)

const amount = (nano: bigint | undefined): string | undefined =>
  nano === undefined ? undefined : (nano < mostStored ? nano : mostStored).toString()

const toRow = (entry: RequestEntry) => ({
  id: entry.id,
  request_id: entry.requestId,
  at: new Date(entry.at).toISOString(),
  surface: entry.surface,
  status: entry.status,
  code: entry.code,
  org_id: entry.org,
  key_id: entry.key,
  address: toStorable(entry.address),
  user_agent: withoutControls(entry.userAgent),
  model: toStorable(entry.model),
  route: entry.route ?? null,
  preferred_route: entry.preferredRoute ?? null,
  provider: entry.provider ?? null,
  stream: entry.stream,
  attempts: entry.attempts.map(({ cost, detail, ms, outcome, provider, providerRequestId, route, status }) => {
    const made = { route, provider, outcome, status, ms, provider_request_id: providerRequestId }
    return { ...made, detail: toStorable(detail) ?? undefined, cost_nano: amount(cost) }
  }),
  provider_request_id: entry.attempts.findLast((it) => it.providerRequestId !== undefined)?.providerRequestId ?? null,
  notes: entry.notes,
  ...toColumns(entry.usage),
  hold_id: entry.hold ?? null,
  charge: entry.charge.toString(),
  cost: amount(entry.cost) ?? null,
  first_byte_ms: entry.firstByteMs ?? null,
  total_ms: entry.totalMs
})

const isUuid = Schema.is(Schema.UUID)

/** The JSON of a row, written together with its charge. */
export const rowOf = (entry: RequestEntry): string => JSON.stringify(toRow(entry))

/** One row per authenticated generating request, written in the background and flushed at a normal stop. */
export class RequestLog extends Context.Tag("gateway/RequestLog")<
  RequestLog,
  {
    /** A later entry of a request replaces its outcome, e.g. when its charge was refunded. */
    readonly write: (entry: RequestEntry) => Effect.Effect<void>
    readonly list: (query: RequestQuery) => Effect.Effect<ReadonlyArray<RequestRow>>
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
      const withStatus = (status: StatusFilter) => {
        if (status === "ok") return sql`request_log.status < 400 AND code IS NULL`
        if (status === "error") return sql`(request_log.status >= 500 OR code = 'stream_error')`
        if (typeof status === "number") return sql`request_log.status = ${status}`
        const from = status === "4xx" ? 400 : 500
        return sql`request_log.status BETWEEN ${from} AND ${from + 99}`
      }
      const equalities = ({ code, key, model, org, route, surface }: Partial<RequestQuery>) =>
        Object.entries({ org_id: org, key_id: key, model, route, surface, code }).flatMap(([name, value]) =>
          value === undefined ? [] : [sql`request_log.${sql(name)} = ${value}`]
        )
      const insert = (entries: Arr.NonEmptyReadonlyArray<RequestEntry>) => sql`
        INSERT INTO request_log (${columns}) SELECT ${columns}
        FROM json_populate_recordset(NULL::request_log, ${JSON.stringify(entries.map(toRow))}::json)
        ON CONFLICT (id) DO UPDATE SET
          status = excluded.status, code = excluded.code, notes = excluded.notes, charge = excluded.charge,
          cost = excluded.cost, attempts = excluded.attempts, provider_request_id = excluded.provider_request_id,
          total_ms = excluded.total_ms`

      const write = yield* Outbox.make<RequestEntry, SqlError.SqlError>({
        capacity: 50_000,
        perBatch: 500,
        write: insert,
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
        list: Effect.fn("RequestLog.list")(
          ({ after, endedSince, id, limit, since, status, until, ...equal }: RequestQuery) =>
            rows(sql`
            SELECT request_log.*, coalesce(holds.charged - coalesce((
                SELECT sum(amount) FROM ledger_entries WHERE ${sql.literal(refundsOf("holds.id"))}
              ), 0), charge)::bigint AS charge,
              coalesce(videos.cost, request_log.cost) AS cost
            FROM request_log
            LEFT JOIN holds ON surface = 'video' AND holds.id = request_log.hold_id
            LEFT JOIN videos ON surface = 'video' AND videos.hold_id = request_log.hold_id
            WHERE ${sql.and([
              sql`true`,
              ...equalities(equal),
              ...(status === undefined ? [] : [withStatus(status)]),
              ...(id === undefined
                ? []
                : [
                    isUuid(id)
                      ? sql`(request_log.request_id = ${id} OR request_log.id = ${id}::uuid)`
                      : sql`request_log.request_id = ${id}`
                  ]),
              ...(since === undefined ? [] : [sql`at >= ${new Date(since)}`]),
              ...(until === undefined ? [] : [sql`at < ${new Date(until)}`]),
              ...(after === undefined
                ? []
                : [sql`(at, request_log.id) < ((SELECT at FROM request_log WHERE id = ${after}), ${after}::uuid)`]),
              ...(endedSince === undefined
                ? []
                : [sql`at + total_ms * interval '1 millisecond' >= ${new Date(endedSince)}`])
            ])}
            ORDER BY at DESC, request_log.id DESC LIMIT ${limit}`)
        ),
        prune: Effect.fn("RequestLog.prune")((olderThan: Duration.Duration) =>
          Effect.map(
            sql`DELETE FROM request_log WHERE id IN (
                SELECT id FROM request_log WHERE at < now() - ${Math.floor(Duration.toSeconds(olderThan))} * interval '1 second' LIMIT 5000
              ) RETURNING id`,
            (rows) => rows.length
          ).pipe(Effect.repeat({ while: (removed) => removed === 5000 }), Effect.orDie)
        )
      })
    })
  )
}
