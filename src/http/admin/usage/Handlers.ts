import { HttpApiBuilder } from "@effect/platform"
import { Effect, Option, Schema } from "effect"
import { KeyId } from "../../../domain/ApiKey.ts"
import { InvalidRequest } from "../../../domain/Failure.ts"
import { type Groupings, usageCsvLines, usageRecord, usageSums } from "../../../services/admin/UsageRecord.ts"
import { Usage } from "../../../services/telemetry/Usage.ts"
import type { UsagePlace } from "../../../services/telemetry/UsageSql.ts"
import { AdminApi } from "../AdminApi.ts"
import { streamCsv } from "../Csv.ts"
import { Text } from "../Fields.ts"
import { organizationOf, spanOf } from "../Filters.ts"
import { defaultListed, wrongCursor } from "../Page.ts"
import { inTurnSoon } from "../Turns.ts"
import type { UsageFilters } from "./Schema.ts"

const Cursor = Schema.compose(
  Schema.StringFromBase64Url,
  Schema.parseJson(Schema.Tuple(Schema.NullOr(Text), Schema.NullOr(Text)))
)
const decodeCursor = Schema.decodeOption(Cursor)
const cursorOf = ({ group, subgroup }: UsagePlace) => Schema.encodeSync(Cursor)([group, subgroup])

const placeOf = (after: string | undefined) => {
  if (after === undefined) return Effect.succeed(undefined)
  return Option.match(decodeCursor(after), {
    onNone: () => wrongCursor,
    onSome: ([group, subgroup]) => Effect.succeed({ group, subgroup })
  })
}

const byModel: Groupings = ["model"]

const queryOf = ({ by = byModel, key, organization, since, until, ...filters }: UsageFilters) =>
  Effect.gen(function* () {
    const span = yield* spanOf({ since, until })
    if (span.since !== undefined && span.until !== undefined && span.since >= span.until) {
      return yield* new InvalidRequest({ message: "`since` must be before `until`.", param: "since" })
    }
    const org = yield* organizationOf(organization)
    return { groupings: by, query: { ...filters, ...span, org, key: key === undefined ? undefined : KeyId.make(key) } }
  })

export const UsageHandlers = HttpApiBuilder.group(
  AdminApi,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const { report } = yield* Usage
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          const { groupings, query } = yield* queryOf(given)
          const [by, thenBy] = groupings
          const { next, rows, totals } = yield* inTurnSoon(
            report({ ...query, by, thenBy, limit, after: yield* placeOf(after) })
          )
          return {
            data: rows.map((row) => usageRecord(groupings, row)),
            has_more: next !== undefined,
            next: next === undefined ? null : cursorOf(next),
            totals: usageSums(totals)
          }
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.flatMap(queryOf(urlParams), ({ groupings, query }) =>
          streamCsv("usage.csv", usageCsvLines(groupings, query))
        )
      )
  })
)
