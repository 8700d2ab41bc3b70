import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { describedField } from "../../domain/Constraints.ts"
import { NotFound } from "../../domain/Failure.ts"
import { modelAt } from "../../domain/Model.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Names } from "../../services/admin/Names.ts"
import { currentReadSlots } from "../../services/admin/ReadLimiter.ts"
import {
  csvLines,
  errorColumns,
  logColumns,
  NamedLogRecord,
  namedLogRecord,
  nameRows
} from "../../services/admin/RequestAdmin.ts"
import {
  ExplainedRequest,
  explainPreference,
  explainRequest,
  PriceRecord
} from "../../services/admin/RequestExplanation.ts"
import { VideoRecord } from "../../services/admin/VideoAdmin.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { countFields } from "../../services/requests/RequestColumns.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { statusForms, statusNames } from "../../services/telemetry/RequestListing.ts"
import { FailureCount, RequestLog } from "../../services/telemetry/RequestLog.ts"
import { csvBody, streamCsv } from "../CsvAnswers.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import {
  adminApiOf,
  exposeCsvToMembers,
  exposeToMembers,
  isColumnVisible,
  ReadAccess,
  ReportErrors
} from "./AdminAccess.ts"
import {
  defaultLimit,
  filtersOf,
  invalidCursor,
  keyParameter,
  organizationParameter,
  pageOf,
  pageParameters,
  spanParameters,
  textParameter
} from "./AdminLists.ts"
import { addressRange } from "./Fields.ts"

const StatusCode = Schema.NumberFromString.pipe(Schema.int(), Schema.between(100, 599))

export const HttpStatus = Schema.Union(Schema.Literal("4xx", "5xx"), StatusCode)

/** Filters shared by the request list and its totals. */
export const requestParameters = {
  ...organizationParameter,
  key: keyParameter,
  model: textParameter("model", "A model's id."),
  route: textParameter("route", "The id of the route that served the request."),
  surface: queryParameter("surface", ...oneOf("chat", "image", "video"), "The endpoint type of the request."),
  status: queryParameter(
    "status",
    Schema.Union(Schema.Literal(...statusNames), StatusCode),
    `must be ${statusForms}`,
    "A status, `4xx`, `5xx`, `ok` (no error, no broken stream), `error` (5xx or a broken stream), or `rejected` (4xx except 499)."
  ),
  ...spanParameters
}

const filters = {
  ...requestParameters,
  user: textParameter("user", "The stored end user of the request."),
  tag: textParameter("tag", "The request's tag."),
  code: textParameter("code", "The error's code, such as `rate_limit_exceeded` or `stream_error`."),
  address: queryParameter("address", ...addressRange, "The client's address, or a range such as `203.0.113.0/24`."),
  search: textParameter("search", "A request id, or the id of a row in the log.")
}

const Filters = Schema.Struct(filters)
type RequestFilters = typeof Filters.Type

const memberFields = [
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
  "total_ms",
  "video_status"
] as const

const MemberRequest = NamedLogRecord.pick(...memberFields)

const memberCsvColumns: ReadonlySet<string> = new Set([...memberFields, ...errorColumns, ...Object.keys(countFields)])

const memberParameters = [
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

const requestPageOf = <A, I>(record: Schema.Schema<A, I>, identifier: string) =>
  Schema.Struct({
    ...pageOf(record, identifier).fields,
    cut_short: describedField(
      Schema.Boolean,
      "True if the search stopped before the page was full. `next` continues the search."
    )
  }).annotations({ identifier })

const listEndpoint = HttpApiEndpoint.get("list", "/requests")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(requestPageOf(NamedLogRecord, "Requests"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the request log, newest first")
  .annotateContext(
    exposeToMembers(requestPageOf(MemberRequest, "MemberRequests"), {
      parameters: ["limit", "after", ...memberParameters]
    })
  )

const csvEndpoint = HttpApiEndpoint.get("csv", "/requests.csv")
  .setUrlParams(Filters)
  .addSuccess(csvBody("A header line, then every matching request."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download the request log as CSV")
  .annotateContext(exposeCsvToMembers({ parameters: memberParameters }))

const Failures = Schema.Struct({ data: Schema.Array(FailureCount) }).annotations({ identifier: "Failures" })

const failuresEndpoint = HttpApiEndpoint.get("failures", "/requests/failures")
  .setUrlParams(Schema.Struct({ ...organizationParameter, ...spanParameters }))
  .addSuccess(Failures)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Count failed requests by status and code, most frequent first")
  .annotateContext(exposeToMembers(Failures, { parameters: ["organization", "since", "until"] }))

export const RequestAnswer = Schema.Struct({
  ...ExplainedRequest.fields,
  ...NamedLogRecord.fields,
  preference: describedField(
    TextOrNull,
    "Whether the request used the route that has the conversation's prompt cache. Null without such a route."
  ),
  others: describedField(Schema.Array(Schema.String), "The ids of other rows with this request id, newest first.")
}).annotations({ identifier: "RequestExplained" })

const showEndpoint = HttpApiEndpoint.get("show", "/requests/:id")
  .setPath(
    Schema.Struct({
      id: Schema.String.annotations({
        description: "A row's id or a request id. If several requests have it, you get the newest."
      })
    })
  )
  .addSuccess(RequestAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a request's attempts and how its price was computed")
  .annotateContext(
    exposeToMembers(
      Schema.Struct({
        ...MemberRequest.fields,
        price: PriceRecord.pick("parts", "price_usd", "hold_usd", "charge_usd", "refunded_usd", "paid_usd"),
        video: Schema.NullOr(VideoRecord.pick("id", "status", "error")),
        others: RequestAnswer.fields.others
      })
    )
  )

export const RequestsGroup = HttpApiGroup.make("requests")
  .add(listEndpoint)
  .add(csvEndpoint)
  .add(failuresEndpoint)
  .add(showEndpoint)
  .addError(ReportErrors)

const isRow = Schema.is(Schema.UUID)
const maxOthers = 100

const filterOf = ({ search, ...filters }: RequestFilters) => filtersOf({ ...filters, id: search })

export const RequestsHandlers = HttpApiBuilder.group(
  adminApiOf(RequestsGroup),
  "requests",
  Effect.fnUntraced(function* (handlers) {
    const log = yield* RequestLog
    const names = yield* Names
    const catalog = yield* Catalog
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isRow(after)) return yield* invalidCursor
          const { scope } = yield* CurrentActor
          const filter = yield* filterOf(given)
          const {
            isTruncated: isCut,
            next,
            rows
          } = yield* (yield* currentReadSlots).runOrBusy(log.page(scope, { ...filter, after, limit }))
          return {
            data: yield* nameRows(scope, rows),
            has_more: next !== undefined,
            next: next ?? null,
            cut_short: isCut
          }
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const columns = logColumns.filter(isColumnVisible(scope, memberCsvColumns))
          return yield* streamCsv("requests.csv", csvLines(scope, yield* filterOf(urlParams), { columns }))
        })
      )
      .handle("failures", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const filter = yield* filtersOf(urlParams)
          return { data: yield* (yield* currentReadSlots).runOrBusy(log.failures(scope, filter)) }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const [row] = yield* log.findById(scope, id, 1)
          if (row === undefined) return yield* new NotFound({ message: `There is no request ${id} in the log.` })
          const duplicates = yield* log.list(scope, { id: row.requestId, limit: maxOthers + 1 })
          const now = yield* Clock.currentTimeMillis
          const models = catalog.current.saleStates.map(({ model }) => modelAt(model, now))
          const explanation = yield* explainRequest(scope, row, models)
          return {
            ...namedLogRecord(explanation, yield* names.of(scope, [row])),
            ...explanation,
            preference: explainPreference(row),
            others: duplicates.flatMap((other) => (other.id === row.id ? [] : [other.id]))
          }
        })
      )
  })
)
