import { Effect, Option, type Schema, Stream } from "effect"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { type EntryQuery, ListedEntry } from "../ledger/Entry.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { type HoldQuery, OpenHold } from "../ledger/OpenHolds.ts"

const perPage = 1_000

interface Paging {
  readonly after: string | undefined
  readonly limit: number
}

type Cells = { readonly [column: string]: CsvCell } & { readonly id: string }

const namesOf = ({ fields }: { readonly fields: Schema.Struct.Fields }) => Object.keys(fields)

const lineOf = (columns: ReadonlyArray<string>, record: Cells) => csvLine(columns.map((column) => record[column]))

/** A line of names, then one for each record, page by page; without their ends. */
const linesOf = <R>(
  columns: ReadonlyArray<string>,
  page: (paging: Paging) => Effect.Effect<ReadonlyArray<Cells>, never, R>
) =>
  Stream.paginateEffect<string | undefined, ReadonlyArray<string>, never, R>(undefined, (after) =>
    Effect.map(page({ after, limit: perPage }), (rows) => {
      const next = rows.length < perPage ? undefined : rows.at(-1)?.id
      return [rows.map((row) => lineOf(columns, row)), Option.fromNullable(next)]
    })
  ).pipe((lines) => Stream.concat(Stream.succeed([csvLine(columns)]), lines))

/** Newest first. */
export const entryLines = (scope: OrganizationScope, query: Omit<EntryQuery, keyof Paging>) =>
  linesOf(namesOf(ListedEntry), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ page }) => page(scope, { ...query, ...paging }))
  )

/** Oldest first. */
export const holdLines = (scope: OrganizationScope, query: Omit<HoldQuery, keyof Paging>) =>
  linesOf(namesOf(OpenHold), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ openHolds }) => openHolds(scope, { ...query, ...paging }))
  )

/** A line of names, then one for each hold. */
export const holdsCsv = (holds: ReadonlyArray<OpenHold>): ReadonlyArray<string> => {
  const columns = namesOf(OpenHold)
  return [csvLine(columns), ...holds.map((hold) => lineOf(columns, hold))]
}
