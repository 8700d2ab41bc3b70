import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Option, Schema } from "effect"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { currentReadSlots } from "../../services/admin/ReadLimiter.ts"
import {
  type Groupings,
  groupingForms,
  parseGroupings,
  UsageRecord,
  UsageSums,
  usageCsvLines,
  usageRecord,
  usageSums
} from "../../services/admin/UsageRecord.ts"
import { customerSums } from "../../services/requests/RequestCounts.ts"
import { Text } from "../../services/resources/ResourceInput.ts"
import { Usage, type UsageCursor, UsageSort } from "../../services/telemetry/Usage.ts"
import { csvBody, streamCsv } from "../CsvAnswers.ts"
import { oneOf, parseWith, queryParameter } from "../schema/Query.ts"
import {
  adminApiOf,
  exposeCsvToMembers,
  exposeToMembers,
  isColumnVisible,
  ReadAccess,
  ReportErrors
} from "./AdminAccess.ts"
import { defaultLimit, filtersOf, invalidCursor, pageOf, pageParameters } from "./AdminLists.ts"
import { HttpStatus, requestParameters } from "./RequestResource.ts"

const filters = {
  ...requestParameters,
  status: queryParameter(
    "status",
    HttpStatus,
    "must be an HTTP status, 4xx or 5xx",
    "The HTTP status of the responses."
  ),
  by: queryParameter(
    "by",
    parseWith(parseGroupings),
    `must be ${groupingForms}`,
    "How to group the rows. The default is `model`. Times are UTC."
  ),
  sort: queryParameter(
    "sort",
    ...oneOf(...UsageSort.literals),
    "Largest first. The default is by charge, and chronological for days and hours."
  )
}

const Filters = Schema.Struct(filters)
type UsageFilters = typeof Filters.Type

export const UsagePage = Schema.Struct({
  ...pageOf(UsageRecord, "Usages").fields,
  totals: UsageSums.annotations({ description: "The totals of all matching requests, on every page." })
}).annotations({ identifier: "UsageReport" })

const memberGroupings = ["model", "key", "day", "hour", "surface", "status", "tag"] as const
const memberNames = ["name", "key_name"] as const
const memberSums = [
  "requests",
  "errors",
  "refusals",
  ...customerSums.map(({ name }) => name),
  "total_tokens",
  "cache_hit_rate",
  "spend_usd"
] as const

const MemberSums = UsageSums.pick(...memberSums)
const MemberUsage = UsageRecord.pick(...memberGroupings, ...memberNames, ...memberSums)

const memberCsvColumns: ReadonlySet<string> = new Set(Object.keys(MemberUsage.fields))

const memberQuery = {
  parameters: ["organization", "key", "model", "surface", "status", "since", "until"],
  values: { by: memberGroupings, sort: ["charge", "requests"] }
}

const listEndpoint = HttpApiEndpoint.get("list", "/usage")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(UsagePage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Report spend, cost, margin and tokens")
  .annotateContext(
    exposeToMembers(Schema.Struct({ ...pageOf(MemberUsage, "MemberUsages").fields, totals: MemberSums }), {
      ...memberQuery,
      parameters: ["limit", "after", ...memberQuery.parameters]
    })
  )

const csvEndpoint = HttpApiEndpoint.get("csv", "/usage.csv")
  .setUrlParams(Filters)
  .addSuccess(csvBody("A header line, then every group, with the columns of the command's `--csv`."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download spend, cost, margin and tokens as CSV")
  .annotateContext(exposeCsvToMembers(memberQuery))

export const UsageGroup = HttpApiGroup.make("usage").add(listEndpoint).add(csvEndpoint).addError(ReportErrors)

const Cursor = Schema.compose(
  Schema.StringFromBase64Url,
  Schema.parseJson(Schema.Tuple(Schema.String, Schema.NullOr(Text), Schema.NullOr(Text)))
)
const decodeCursor = Schema.decodeOption(Cursor)
const cursorOf = (groupings: Groupings, { group, subgroup }: UsageCursor) =>
  Schema.encodeSync(Cursor)([groupings.join(","), group, subgroup])

/** Decodes a cursor. Fails if it comes from a report with other groupings, because it would match no row. */
const readCursor = (groupings: Groupings, after: string | undefined) => {
  if (after === undefined) return Effect.succeed(undefined)
  return Option.match(
    Option.filter(decodeCursor(after), ([by]) => by === groupings.join(",")),
    {
      onNone: () => invalidCursor,
      onSome: ([, group, subgroup]) => Effect.succeed({ group, subgroup })
    }
  )
}

const byModel: Groupings = ["model"]

const queryOf = ({ by = byModel, ...filters }: UsageFilters) =>
  Effect.map(filtersOf(filters), (query) => ({ groupings: by, query }))

export const UsageHandlers = HttpApiBuilder.group(
  adminApiOf(UsageGroup),
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const { report } = yield* Usage
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, ...parameters } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const { groupings, query } = yield* queryOf(parameters)
          const [by, thenBy] = groupings
          const cursor = yield* readCursor(groupings, after)
          const { next, rows, totals } = yield* (yield* currentReadSlots).runOrBusy(
            report(scope, { ...query, by, thenBy, limit, after: cursor })
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
          const lines = usageCsvLines(scope, groupings, query, isColumnVisible(scope, memberCsvColumns))
          return yield* streamCsv("usage.csv", lines)
        })
      )
  })
)
