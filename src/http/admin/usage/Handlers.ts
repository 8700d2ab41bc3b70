import { HttpApiBuilder } from "@effect/platform"
import { Effect, Option, Schema } from "effect"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { currentTurns } from "../../../services/admin/ReadTurns.ts"
import { type Groupings, usageCsvLines, usageRecord, usageSums } from "../../../services/admin/UsageRecord.ts"
import { Text } from "../../../services/resources/BodyFields.ts"
import { Usage } from "../../../services/telemetry/Usage.ts"
import type { UsagePlace } from "../../../services/telemetry/UsageSql.ts"
import { AdminApi } from "../AdminApi.ts"
import { streamCsv } from "../Csv.ts"
import { filtersOf } from "../Filters.ts"
import { isColumnShown } from "../Members.ts"
import { defaultListed, wrongCursor } from "../Page.ts"
import { memberColumns, type UsageFilters } from "./Schema.ts"

const Cursor = Schema.compose(
  Schema.StringFromBase64Url,
  Schema.parseJson(Schema.Tuple(Schema.String, Schema.NullOr(Text), Schema.NullOr(Text)))
)
const decodeCursor = Schema.decodeOption(Cursor)
const cursorOf = (groupings: Groupings, { group, subgroup }: UsagePlace) =>
  Schema.encodeSync(Cursor)([groupings.join(","), group, subgroup])

/** A cursor of other groupings would match no row. */
const placeOf = (groupings: Groupings, after: string | undefined) => {
  if (after === undefined) return Effect.succeed(undefined)
  return Option.match(
    Option.filter(decodeCursor(after), ([by]) => by === groupings.join(",")),
    {
      onNone: () => wrongCursor,
      onSome: ([, group, subgroup]) => Effect.succeed({ group, subgroup })
    }
  )
}

const byModel: Groupings = ["model"]

const queryOf = ({ by = byModel, ...filters }: UsageFilters) =>
  Effect.map(filtersOf(filters), (query) => ({ groupings: by, query }))

export const UsageHandlers = HttpApiBuilder.group(
  AdminApi,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const { report } = yield* Usage
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const { groupings, query } = yield* queryOf(given)
          const [by, thenBy] = groupings
          const place = yield* placeOf(groupings, after)
          const { next, rows, totals } = yield* (yield* currentTurns).takeSoon(
            report(scope, { ...query, by, thenBy, limit, after: place })
          )
          return {
            data: rows.map((row) => usageRecord(groupings, row)),
            has_more: next !== undefined,
            next: next === undefined ? null : cursorOf(groupings, next),
            totals: usageSums(totals)
          }
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const { groupings, query } = yield* queryOf(urlParams)
          const lines = usageCsvLines(scope, groupings, query, isColumnShown(scope, memberColumns))
          return yield* streamCsv("usage.csv", lines)
        })
      )
  })
)
