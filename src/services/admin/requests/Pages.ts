import { Effect, Option, Stream } from "effect"
import { csvLine } from "../../../domain/Csv.ts"
import { zero } from "../../../domain/Money.ts"
import type { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../ledger/LedgerAdmin.ts"
import type { RequestQuery } from "../../telemetry/RequestListing.ts"
import { RequestLog, type RequestRow } from "../../telemetry/RequestLog.ts"
import { Names } from "../Names.ts"
import { logCells, logColumns, logRecord, namedLogRecord } from "./Record.ts"

const perPage = 250

export type RequestFilter = Omit<RequestQuery, "limit" | "after" | "endedSince">

interface Place {
  readonly left: number
  readonly after?: string | undefined
}

/** Newest first, page by page, so that memory stays the same however many rows there are. */
export const pagesOf = (scope: OrganizationScope, filter: RequestFilter, limit = Infinity) =>
  Stream.paginateEffect<Place, ReadonlyArray<RequestRow>, never, RequestLog>({ left: limit }, ({ after, left }) =>
    Effect.gen(function* () {
      const { page } = yield* RequestLog
      const size = Math.min(left, perPage)
      const { next, rows } = yield* page(scope, { ...filter, after, limit: size })
      const more = left - rows.length
      return [rows, next === undefined || more === 0 ? Option.none() : Option.some({ left: more, after: next })]
    })
  ).pipe(Stream.filter((rows) => rows.length > 0))

/** With what was refunded of each. */
export const logRecords = Effect.fnUntraced(function* (rows: ReadonlyArray<RequestRow>) {
  const { refundedAmounts } = yield* LedgerAdmin
  const refunded = yield* refundedAmounts(rows.flatMap(({ holdId }) => holdId ?? []))
  return rows.map((row) => logRecord(row, refunded.get(row.holdId ?? "") ?? zero))
})

export const nameRows = Effect.fnUntraced(function* (scope: OrganizationScope, rows: ReadonlyArray<RequestRow>) {
  const names = yield* Effect.flatMap(Names, ({ of }) => of(scope, rows))
  return (yield* logRecords(rows)).map((record) => namedLogRecord(record, names))
})

/** A line of names, then one for each row; without their ends. */
export const csvLines = (
  scope: OrganizationScope,
  filter: RequestFilter,
  {
    columns = logColumns,
    limit
  }: { readonly columns?: ReadonlyArray<string>; readonly limit?: number | undefined } = {}
) =>
  Stream.concat(
    Stream.succeed([csvLine(columns)]),
    Stream.mapEffect(pagesOf(scope, filter, limit), (rows) =>
      Effect.map(nameRows(scope, rows), (records) => records.map((record) => csvLine(logCells(record, columns))))
    )
  )
