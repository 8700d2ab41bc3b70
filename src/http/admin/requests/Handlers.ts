import { HttpApiBuilder } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { NotFound } from "../../../domain/Failure.ts"
import { modelAt } from "../../../domain/Model.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { Names } from "../../../services/admin/Names.ts"
import { currentTurns } from "../../../services/admin/ReadTurns.ts"
import { explainPreference, explainRequest } from "../../../services/admin/requests/Explanation.ts"
import { csvLines, nameRows } from "../../../services/admin/requests/Pages.ts"
import { logColumns, namedLogRecord } from "../../../services/admin/requests/Record.ts"
import { Catalog } from "../../../services/catalog/Catalog.ts"
import { RequestLog } from "../../../services/telemetry/RequestLog.ts"
import { AdminApi } from "../AdminApi.ts"
import { streamCsv } from "../Csv.ts"
import { invalid } from "../Fields.ts"
import { filtersOf } from "../Filters.ts"
import { isColumnShown } from "../Members.ts"
import { cutPage, defaultListed, wrongCursor } from "../Page.ts"
import { memberColumns, type RequestFilters } from "./Schema.ts"

const isRow = Schema.is(Schema.UUID)
const maxOthers = 100

const filterOf = Effect.fnUntraced(function* ({ search, ...filters }: RequestFilters) {
  const filter = yield* filtersOf({ ...filters, id: search })
  if (filter.address === undefined) return filter
  const turns = yield* currentTurns
  const { checkSearch } = yield* RequestLog
  const { scope } = yield* CurrentActor
  yield* turns.takeSoon(checkSearch(scope, filter)).pipe(Effect.catchTag("SearchTooLong", invalid("address")))
  return filter
})

export const RequestsHandlers = HttpApiBuilder.group(
  AdminApi,
  "requests",
  Effect.fnUntraced(function* (handlers) {
    const log = yield* RequestLog
    const names = yield* Names
    const catalog = yield* Catalog
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isRow(after)) return yield* wrongCursor
          const { scope } = yield* CurrentActor
          const filter = yield* filterOf(given)
          const rows = yield* (yield* currentTurns).takeSoon(log.list(scope, { ...filter, after, limit: limit + 1 }))
          const { data, ...page } = cutPage(
            rows,
            limit,
            (row) => row,
            ({ id }) => id
          )
          return { ...page, data: yield* nameRows(scope, data) }
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const columns = logColumns.filter(isColumnShown(scope, memberColumns))
          return yield* streamCsv("requests.csv", csvLines(scope, yield* filterOf(urlParams), { columns }))
        })
      )
      .handle("failures", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const filter = yield* filtersOf(urlParams)
          return { data: yield* (yield* currentTurns).takeSoon(log.failures(scope, filter)) }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const [row] = yield* log.list(scope, { id, limit: 1 })
          if (row === undefined) return yield* new NotFound({ message: `There is no request ${id} in the log.` })
          const same = yield* log.list(scope, { id: row.requestId, limit: maxOthers + 1 })
          const now = yield* Clock.currentTimeMillis
          const models = catalog.current.offers.map(({ model }) => modelAt(model, now))
          const explained = yield* explainRequest(scope, row, models)
          return {
            ...namedLogRecord(explained, yield* names.of(scope, [row])),
            ...explained,
            preference: explainPreference(row),
            others: same.flatMap((other) => (other.id === row.id ? [] : [other.id]))
          }
        })
      )
  })
)
