import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Clock, Effect, Schema } from "effect"
import { described } from "../../domain/Constraints.ts"
import { NotFound } from "../../domain/Failure.ts"
import { modelAt } from "../../domain/Model.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Names } from "../../services/admin/Names.ts"
import { currentTurns } from "../../services/admin/ReadTurns.ts"
import { ExplainedRequest, explainPreference, explainRequest } from "../../services/admin/requests/Explanation.ts"
import { csvLines, nameRows } from "../../services/admin/requests/Pages.ts"
import { PriceRecord } from "../../services/admin/requests/Price.ts"
import { errorColumns, logColumns, NamedLogRecord, namedLogRecord } from "../../services/admin/requests/Record.ts"
import { VideoRecord } from "../../services/admin/VideoAdmin.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { countFields } from "../../services/requests/RequestColumns.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { FailureCount, RequestLog } from "../../services/telemetry/RequestLog.ts"
import { oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ReadAccess, ReportErrors } from "./Access.ts"
import { csvBody, streamCsv } from "./Csv.ts"
import { addressRange } from "./Fields.ts"
import { filtersOf, keyParameter, organizationParameter, spanParameters, textParameter } from "./Filters.ts"
import { isColumnShown, membersDownload, membersSee } from "./Members.ts"
import { defaultListed, pageOf, pageParameters, wrongCursor } from "./Page.ts"

export const HttpStatus = Schema.Union(
  Schema.Literal("4xx", "5xx"),
  Schema.NumberFromString.pipe(Schema.int(), Schema.between(100, 599))
)

/** Filters shared by the request list and its totals. */
export const requestParameters = {
  ...organizationParameter,
  key: keyParameter,
  model: textParameter("model", "A model's id."),
  route: textParameter("route", "The id of the route that answered."),
  surface: parameter("surface", ...oneOf("chat", "image", "video"), "What was requested."),
  status: parameter(
    "status",
    Schema.Union(Schema.Literal("ok", "error"), ...HttpStatus.members),
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
    ...addressRange,
    "The client's address, or a range such as `203.0.113.0/24`; of at most 500,000 requests in the span, of the key or of the organization."
  ),
  search: textParameter("search", "A request id, or the id of a row.")
}

const Filters = Schema.Struct(filters)
type RequestFilters = typeof Filters.Type

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
const memberColumns: ReadonlySet<string> = new Set([...seenByMembers, ...errorColumns, ...Object.keys(countFields)])

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
  .annotateContext(
    membersSee(pageOf(MemberRequest, "MemberRequests"), { parameters: ["limit", "after", ...ofMembers] })
  )

const csv = HttpApiEndpoint.get("csv", "/requests.csv")
  .setUrlParams(Filters)
  .addSuccess(csvBody("A line of names, then every request that matches."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download the request log")
  .annotateContext(membersDownload({ parameters: ofMembers }))

const Failures = Schema.Struct({ data: Schema.Array(FailureCount) }).annotations({ identifier: "Failures" })

const failures = HttpApiEndpoint.get("failures", "/requests/failures")
  .setUrlParams(Schema.Struct({ ...organizationParameter, ...spanParameters }))
  .addSuccess(Failures)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Count the requests that failed by status and code, the most frequent first")
  .annotateContext(membersSee(Failures, { parameters: ["organization", "since", "until"] }))

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
  .annotateContext(
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
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isRow(after)) return yield* wrongCursor
          const { scope } = yield* CurrentActor
          const filter = yield* filterOf(given)
          const { next, rows } = yield* (yield* currentTurns).takeSoon(log.page(scope, { ...filter, after, limit }))
          return { data: yield* nameRows(scope, rows), has_more: next !== undefined, next: next ?? null }
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
