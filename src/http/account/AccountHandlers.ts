import { HttpApiBuilder } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Clock, Effect, Either, Schema } from "effect"
import { encodeCsv } from "../../domain/Csv.ts"
import { RequestNotFound } from "../../domain/Failure.ts"
import { toUsd, toUsdText } from "../../domain/Money.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { countFields } from "../../services/requests/RequestColumns.ts"
import { customerCounts, customerSums, isOfChat } from "../../services/requests/RequestCounts.ts"
import { Statement, Statements } from "../../services/statements/Statements.ts"
import { type CustomerGrouping, type CustomerRequest, CustomerUsage } from "../../services/telemetry/CustomerUsage.ts"
import type { UsageRow } from "../../services/telemetry/Usage.ts"
import { ResourceApi } from "../Api.ts"
import { isRequestId } from "../admission/RequestContext.ts"
import { refusalAt, refuse } from "../body/Guards.ts"
import { csvAnswer, prefersCsv } from "../CsvAnswers.ts"
import { json, respond } from "../HttpAnswer.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import type { UsageQuery } from "./AccountApi.ts"

export const CreditsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "credits",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* Ledger
    return handlers.handleRaw("show", () =>
      Effect.gen(function* () {
        const { org } = yield* CurrentCaller
        const funds = yield* ledger.funds(org)
        return respond(
          json(200, {
            object: "credits",
            available_usd: toUsd(availableOf(funds)),
            balance_usd: toUsd(funds.balance),
            held_usd: toUsd(funds.held),
            cap_usd: funds.cap === null ? null : toUsd(funds.cap),
            cap_spent_usd: funds.capSpent === null ? null : toUsd(funds.capSpent),
            cap_resets_at: funds.capResetsAt && Math.floor(funds.capResetsAt.getTime() / 1000)
          })
        )
      })
    )
  })
)

const encode = Schema.encodeSync(Statement)

export const StatementHandlers = HttpApiBuilder.group(
  ResourceApi,
  "statement",
  Effect.fnUntraced(function* (handlers) {
    const statements = yield* Statements
    return handlers.handleRaw("show", ({ urlParams: { month } }) =>
      Effect.gen(function* () {
        const { org } = yield* CurrentCaller
        return respond(json(200, encode(yield* statements.findForCustomer(org, month))))
      }).pipe(Effect.catchTags({ NoStatement: ({ message }) => refuse("month", message) }))
    )
  })
)

const dayMillis = 86_400_000
const defaultDays = 30
const maxDays = 366
/** A range grouped by tag is shorter, because each day may have 1,000 tags with a row each. */
const maxTagDays = 31

export const rangeOf = ({ by, from, to }: typeof UsageQuery.Type, now: number) => {
  const until = to ?? now
  const since = from ?? Math.max(0, Math.floor(until / dayMillis - defaultDays) * dayMillis)
  if (since >= until) return Either.left(refusalAt("from", "from", "must be before `to`"))
  const [days, condition] = by === "tag" ? [maxTagDays, " with `by=tag`"] : [maxDays, ""]
  return until - since > days * dayMillis
    ? Either.left(refuse("from", `\`from\` and \`to\` must be at most ${days} days apart${condition}.`))
    : Either.right({ since, until })
}

const countsOf = (sum: UsageRow) => ({
  requests: sum.requests,
  ...Object.fromEntries(customerSums.map(({ name }) => [name, sum[countFields[name]]]))
})

const groupOf = (by: CustomerGrouping, { group, label }: UsageRow) => ({
  [by]: group,
  ...(by === "key" ? { key_name: label } : {})
})

const csvOf = (by: CustomerGrouping, sums: ReadonlyArray<UsageRow>): string =>
  encodeCsv(
    [by, ...(by === "key" ? ["key_name"] : []), "requests", ...customerSums.map(({ name }) => name), "charge_usd"],
    sums.map((sum) => [...Object.values(groupOf(by, sum)), ...Object.values(countsOf(sum)), toUsdText(sum.charge)])
  )

const requestCountsOf = (request: CustomerRequest) => {
  const isCounted = request.promptTokens !== null || request.completionTokens !== null
  return Object.fromEntries(
    customerCounts.map((count) => [
      count.name,
      request[countFields[count.name]] ?? (isCounted && isOfChat(count) ? 0 : null)
    ])
  )
}

const requestJson = (request: CustomerRequest) => ({
  id: request.requestId,
  object: "request",
  created_at: Math.floor(request.at.getTime() / 1000),
  surface: request.surface,
  model: request.model,
  stream: request.stream,
  status: request.status,
  code: request.code,
  error: request.error,
  end_user: request.endUser,
  tag: request.tag,
  ...requestCountsOf(request),
  hold_usd: request.hold === null ? null : toUsd(request.hold),
  charge_usd: toUsd(request.charge),
  attempts: request.attempts.map(({ ms, outcome }) => ({ outcome, ms })),
  first_byte_ms: request.firstByteMs,
  total_ms: request.totalMs
})

export const UsageHandlers = HttpApiBuilder.group(
  ResourceApi,
  "usage",
  Effect.fnUntraced(function* (handlers) {
    const usage = yield* CustomerUsage
    return handlers
      .handleRaw("sum", ({ request, urlParams }) =>
        Effect.gen(function* () {
          const { org } = yield* CurrentCaller
          const { by = "day" } = urlParams
          const range = yield* rangeOf(urlParams, yield* Clock.currentTimeMillis)
          const sums = yield* usage.sum({ org, by, ...range })
          // `setHeader` would replace the `vary: origin` of CORS.
          NodeHttpServerRequest.toServerResponse(request).appendHeader("vary", "accept")
          if (prefersCsv(request.headers["accept"])) {
            return respond(csvAnswer(csvOf(by, sums)))
          }
          const data = sums.map((sum) => ({ ...groupOf(by, sum), ...countsOf(sum), charge_usd: toUsd(sum.charge) }))
          return respond(json(200, { object: "list", data }))
        })
      )
      .handleRaw("find", ({ path: { request_id } }) =>
        Effect.gen(function* () {
          const { org } = yield* CurrentCaller
          if (!isRequestId(request_id)) return yield* new RequestNotFound()
          return respond(json(200, requestJson(yield* usage.find(org, request_id))))
        })
      )
  })
)
