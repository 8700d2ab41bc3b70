import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { described } from "../../../domain/Constraints.ts"
import { ExplainedRequest } from "../../../services/admin/requests/Explanation.ts"
import { PriceRecord } from "../../../services/admin/requests/Price.ts"
import { errorColumns, NamedLogRecord } from "../../../services/admin/requests/Record.ts"
import { VideoRecord } from "../../../services/admin/VideoRecord.ts"
import { countFields } from "../../../services/requests/RequestColumns.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { FailureCount } from "../../../services/telemetry/RequestFailures.ts"
import { parameter } from "../../schema/Query.ts"
import { ReadAccess, ReportErrors } from "../Access.ts"
import { csvBody } from "../Csv.ts"
import { AddressRangeText, rangeProblem } from "../Fields.ts"
import { keyParameter, organizationParameter, spanParameters, textParameter } from "../Filters.ts"
import { membersDownload, membersSee, OpenToMembers } from "../Members.ts"
import { pageOf, pageParameters } from "../Page.ts"

const Status = Schema.Union(
  Schema.Literal("4xx", "5xx", "ok", "error"),
  Schema.NumberFromString.pipe(Schema.int(), Schema.between(100, 599))
)

/** Filters shared by the request list and its totals. */
export const requestParameters = {
  ...organizationParameter,
  key: keyParameter,
  model: textParameter("model", "A model's id."),
  route: textParameter("route", "The id of the route that answered."),
  surface: parameter(
    "surface",
    Schema.Literal("chat", "image", "video"),
    "must be one of chat, image, video",
    "What was requested."
  ),
  status: parameter(
    "status",
    Status,
    "must be an HTTP status, 4xx, 5xx, ok or error",
    "What the client got: one status, `4xx`, `5xx`, `ok` (no error, no broken stream), or `error` (5xx or a broken stream)."
  ),
  ...spanParameters
}

const filters = {
  ...requestParameters,
  user: textParameter("user", "The end user that the request named, as it is kept."),
  tag: textParameter("tag", "The request's tag."),
  code: textParameter("code", "The error's code, such as `rate_limit_exceeded` or `stream_error`."),
  address: parameter(
    "address",
    AddressRangeText,
    rangeProblem,
    "The client's address, or a range such as `203.0.113.0/24`; of at most 500,000 requests in the span, of the key or of the organization."
  ),
  search: textParameter("search", "A request id, or the id of a row.")
}

const Filters = Schema.Struct(filters)
export type RequestFilters = typeof Filters.Type

const seenByMembers = [
  "id",
  "request_id",
  "at",
  "status",
  "code",
  "error",
  "org",
  "org_name",
  "key_id",
  "key_name",
  "end_user",
  "tag",
  "surface",
  "model",
  "stream",
  "usage",
  "charge_usd",
  "refunded_usd",
  "first_byte_ms",
  "total_ms"
] as const

const MemberRequest = NamedLogRecord.pick(...seenByMembers)

/** Of the CSV. */
export const memberColumns: ReadonlySet<string> = new Set([
  ...seenByMembers,
  ...errorColumns,
  ...Object.keys(countFields)
])

const ofMembers = [
  "organization",
  "key",
  "model",
  "surface",
  "status",
  "since",
  "until",
  "user",
  "tag",
  "code",
  "search"
]

const list = HttpApiEndpoint.get("list", "/requests")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(pageOf(NamedLogRecord, "Requests"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the request log, newest first")
  .annotate(
    OpenToMembers,
    membersSee(pageOf(MemberRequest, "MemberRequests"), { parameters: ["limit", "after", ...ofMembers] })
  )

const csv = HttpApiEndpoint.get("csv", "/requests.csv")
  .setUrlParams(Filters)
  .addSuccess(csvBody("A line of names, then every request that matches."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download the request log")
  .annotate(OpenToMembers, membersDownload({ parameters: ofMembers }))

const Failures = Schema.Struct({ data: Schema.Array(FailureCount) }).annotations({ identifier: "Failures" })

const failures = HttpApiEndpoint.get("failures", "/requests/failures")
  .setUrlParams(Schema.Struct({ ...organizationParameter, ...spanParameters }))
  .addSuccess(Failures)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Count the requests that failed by status and code, the most frequent first")
  .annotate(OpenToMembers, membersSee(Failures, { parameters: ["organization", "since", "until"] }))

export const ShownRequest = Schema.Struct({
  ...ExplainedRequest.fields,
  ...NamedLogRecord.fields,
  preference: described(
    TextOrNull,
    "What became of the route that had the conversation's prompt cache; null where none had it."
  ),
  others: described(Schema.Array(Schema.String), "The ids of other rows with this request id, newest first.")
}).annotations({ identifier: "RequestExplained" })

const show = HttpApiEndpoint.get("show", "/requests/:id")
  .setPath(
    Schema.Struct({
      id: Schema.String.annotations({ description: "A row's id; or a request id: of several requests the newest." })
    })
  )
  .addSuccess(ShownRequest)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show what happened to a request, and why it cost what it did")
  .annotate(
    OpenToMembers,
    membersSee(
      Schema.Struct({
        ...MemberRequest.fields,
        price: PriceRecord.pick("parts", "price_usd", "hold_usd", "charge_usd", "refunded_usd", "paid_usd"),
        video: Schema.NullOr(VideoRecord.pick("id", "status", "error")),
        others: ShownRequest.fields.others
      })
    )
  )

export const RequestsGroup = HttpApiGroup.make("requests")
  .add(list)
  .add(csv)
  .add(failures)
  .add(show)
  .addError(ReportErrors)
