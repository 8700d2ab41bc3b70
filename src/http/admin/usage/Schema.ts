import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { ParseResult, Schema } from "effect"
import {
  type Groupings,
  groupingForms,
  parseGroupings,
  UsageRecord,
  UsageSums
} from "../../../services/admin/UsageRecord.ts"
import { customerSums } from "../../../services/requests/RequestCounts.ts"
import { UsageSort } from "../../../services/telemetry/UsageSql.ts"
import { parameter } from "../../schema/Query.ts"
import { ReadAccess, ReportErrors } from "../Access.ts"
import { csvBody } from "../Csv.ts"
import { membersDownload, membersSee, OpenToMembers } from "../Members.ts"
import { pageOf, pageParameters } from "../Page.ts"
import { requestParameters } from "../requests/Schema.ts"

const GroupingsText = Schema.transformOrFail(
  Schema.String,
  Schema.declare((value): value is Groupings => Array.isArray(value)),
  {
    strict: true,
    decode: (text, _, ast) => {
      const groupings = parseGroupings(text)
      return groupings === undefined
        ? ParseResult.fail(new ParseResult.Type(ast, text))
        : ParseResult.succeed(groupings)
    },
    encode: (groupings) => ParseResult.succeed(groupings.join(","))
  }
)

const Status = Schema.Union(
  Schema.Literal("4xx", "5xx"),
  Schema.NumberFromString.pipe(Schema.int(), Schema.between(100, 599))
)

const filters = {
  ...requestParameters,
  status: parameter("status", Status, "must be an HTTP status, 4xx or 5xx", "What the clients got."),
  by: parameter(
    "by",
    GroupingsText,
    `must be ${groupingForms}`,
    "What to add up by; `model` if left out. Times are UTC."
  ),
  sort: parameter(
    "sort",
    UsageSort,
    `must be one of ${UsageSort.literals.join(", ")}`,
    "The largest first; if left out days and hours in their order, and otherwise by charge."
  )
}

const Filters = Schema.Struct(filters)
export type UsageFilters = typeof Filters.Type

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
export const memberColumns: ReadonlySet<string> = new Set(Object.keys(MemberUsage.fields))

const ofMembers = {
  parameters: ["organization", "key", "model", "surface", "status", "since", "until"],
  values: { by: groupsOfMembers, sort: ["charge", "requests"] }
}

const list = HttpApiEndpoint.get("list", "/usage")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(UsagePage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Add up spend, cost, margin and tokens")
  .annotate(
    OpenToMembers,
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
  .annotate(OpenToMembers, membersDownload(ofMembers))

export const UsageGroup = HttpApiGroup.make("usage").add(list).add(csv).addError(ReportErrors)
