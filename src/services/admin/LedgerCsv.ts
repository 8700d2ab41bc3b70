import { Effect, Option, type Schema, Stream } from "effect"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { type EntryQuery, ListedEntry } from "../ledger/Entry.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { type HoldQuery, OpenHold } from "../ledger/OpenHolds.ts"

const pageSize = 1_000

interface Paging {
  readonly after: string | undefined
  readonly limit: number
}

type Cells = { readonly [column: string]: CsvCell } & { readonly id: string }

const namesOf = ({ fields }: { readonly fields: Schema.Struct.Fields }) => Object.keys(fields)

const lineOf = (columns: ReadonlyArray<string>, record: Cells) => csvLine(columns.map((column) => record[column]))

/** Streams a header line and a line for each record, without line breaks. Reads the records page by page. */
const linesOf = <R>(
  columns: ReadonlyArray<string>,
  page: (paging: Paging) => Effect.Effect<ReadonlyArray<Cells>, never, R>
) =>
  Stream.paginateEffect<string | undefined, ReadonlyArray<string>, never, R>(undefined, (after) =>
    Effect.map(page({ after, limit: pageSize }), (rows) => {
      const next = rows.length < pageSize ? undefined : rows.at(-1)?.id
      return [rows.map((row) => lineOf(columns, row)), Option.fromNullable(next)]
    })
  ).pipe((lines) => Stream.concat(Stream.succeed([csvLine(columns)]), lines))

/** Streams the CSV lines of ledger entries, newest first. */
export const entryLines = (scope: OrganizationScope, query: Omit<EntryQuery, keyof Paging>) =>
  linesOf(namesOf(ListedEntry), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ page }) => page(scope, { ...query, ...paging }))
  )

/** Streams the CSV lines of open holds, oldest first. */
export const holdLines = (scope: OrganizationScope, query: Omit<HoldQuery, keyof Paging>) =>
  linesOf(namesOf(OpenHold), (paging) =>
    Effect.flatMap(LedgerAdmin, ({ openHolds }) => openHolds(scope, { ...query, ...paging }))
  )

export const holdsCsv = (holds: ReadonlyArray<OpenHold>): ReadonlyArray<string> => {
  const columns = namesOf(OpenHold)
  return [csvLine(columns), ...holds.map((hold) => lineOf(columns, hold))]
}
