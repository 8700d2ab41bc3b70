import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Option, Schema } from "effect"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { currentTurns } from "../../services/admin/ReadTurns.ts"
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
import { Text } from "../../services/resources/BodyFields.ts"
import { Usage } from "../../services/telemetry/Usage.ts"
import { type UsagePlace, UsageSort } from "../../services/telemetry/UsageSql.ts"
import { oneOf, parameter, parsedBy } from "../schema/Query.ts"
import { adminApiOf, ReadAccess, ReportErrors } from "./Access.ts"
import { csvBody, streamCsv } from "./Csv.ts"
import { filtersOf } from "./Filters.ts"
import { isColumnShown, membersDownload, membersSee } from "./Members.ts"
import { defaultListed, pageOf, pageParameters, wrongCursor } from "./Page.ts"
import { HttpStatus, requestParameters } from "./Requests.ts"

const filters = {
  ...requestParameters,
  status: parameter("status", HttpStatus, "must be an HTTP status, 4xx or 5xx", "What the clients got."),
  by: parameter(
    "by",
    parsedBy(parseGroupings),
    `must be ${groupingForms}`,
    "What to add up by; `model` if left out. Times are UTC."
  ),
  sort: parameter(
    "sort",
    ...oneOf(...UsageSort.literals),
    "The largest first; if left out days and hours in their order, and otherwise by charge."
  )
}

const Filters = Schema.Struct(filters)
type UsageFilters = typeof Filters.Type

export const UsagePage = Schema.Struct({
  ...pageOf(UsageRecord, "Usages").fields,
  totals: UsageSums.annotations({ description: "Of all that matches, whatever the page." })
}).annotations({ identifier: "UsageReport" })

const groupsOfMembers = ["model", "key", "day", "hour", "surface", "status", "tag"] as const
const namesOfMembers = ["name", "key_name"] as const
const sumsOfMembers = [
  "requests",
  "errors",
  "refusals",
  ...customerSums.map(({ name }) => name),
  "total_tokens",
  "cache_hit_rate",
  "spend_usd"
] as const

const MemberSums = UsageSums.pick(...sumsOfMembers)
const MemberUsage = UsageRecord.pick(...groupsOfMembers, ...namesOfMembers, ...sumsOfMembers)

/** Of the CSV. */
const memberColumns: ReadonlySet<string> = new Set(Object.keys(MemberUsage.fields))

const ofMembers = {
  parameters: ["organization", "key", "model", "surface", "status", "since", "until"],
  values: { by: groupsOfMembers, sort: ["charge", "requests"] }
}

const list = HttpApiEndpoint.get("list", "/usage")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(UsagePage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Add up spend, cost, margin and tokens")
  .annotateContext(
    membersSee(Schema.Struct({ ...pageOf(MemberUsage, "MemberUsages").fields, totals: MemberSums }), {
      ...ofMembers,
      parameters: ["limit", "after", ...ofMembers.parameters]
    })
  )

const csv = HttpApiEndpoint.get("csv", "/usage.csv")
  .setUrlParams(Filters)
  .addSuccess(csvBody("A line of names, then every group, with the columns of the command's `--csv`."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download spend, cost, margin and tokens")
  .annotateContext(membersDownload(ofMembers))

export const UsageGroup = HttpApiGroup.make("usage").add(list).add(csv).addError(ReportErrors)

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
  adminApiOf(UsageGroup),
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
