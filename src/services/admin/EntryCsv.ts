import { Effect, Option, Stream } from "effect"
import { csvLine } from "../../domain/Csv.ts"
import { ListedEntry } from "../ledger/Entry.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import type { EntryQuery } from "../ledger/LedgerPages.ts"

const perPage = 1_000

const isColumn = (name: string): name is keyof ListedEntry => name in ListedEntry.fields
const columns = Object.keys(ListedEntry.fields).filter(isColumn)

const lineOf = (record: ListedEntry) => csvLine(columns.map((column) => record[column]))

/** A line of names, then one for each entry, newest first; without their ends. */
export const entryLines = (query: Omit<EntryQuery, "after" | "limit">) =>
  Stream.paginateEffect<string | undefined, ReadonlyArray<string>, never, LedgerAdmin>(undefined, (after) =>
    Effect.map(
      Effect.flatMap(LedgerAdmin, ({ page }) => page({ ...query, after, limit: perPage })),
      (rows) => {
        const next = rows.length < perPage ? undefined : rows.at(-1)?.id
        return [rows.map(lineOf), Option.fromNullable(next)]
      }
    )
  ).pipe((lines) => Stream.concat(Stream.succeed([csvLine(columns)]), lines))
