import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { describedField, Integer } from "../../domain/Constraints.ts"
import { Surface } from "../../domain/Model.ts"
import { instantOf } from "../../domain/Moment.ts"
import { RequestError } from "../../services/requests/RequestColumns.ts"
import { customerCounts, customerSums, type RequestCount } from "../../services/requests/RequestCounts.ts"
import { Statement } from "../../services/statements/Statements.ts"
import { csvBody } from "../CsvAnswers.ts"
import { InvalidQuery, ReadErrors, response } from "../errors/ErrorMessages.ts"
import { Authenticated } from "../schema/Headers.ts"
import { monthParameter, oneOf, parseWith, queryParameter } from "../schema/Query.ts"

const CreditBalance = Schema.Struct({
  object: Schema.Literal("credits"),
  available_usd: Schema.Number.annotations({ description: "The balance minus open holds." }),
  balance_usd: Schema.Number.annotations({ description: "The settled balance." }),
  held_usd: Schema.Number.annotations({ description: "The USD that running requests reserve." }),
  cap_usd: Schema.NullOr(Schema.Number).annotations({
    description: "The organization's spending cap, or null."
  }),
  cap_spent_usd: Schema.NullOr(Schema.Number).annotations({
    description: "The charges in the current period of the cap, or null."
  }),
  cap_resets_at: Schema.NullOr(Schema.Number).annotations({
    description: "The start of the next period, in Unix seconds. Null without a cap, and for a total cap."
  })
}).annotations({
  identifier: "Credits",
  description: "The balance of the key's organization, and its spending cap, in USD."
})

const showCreditsEndpoint = HttpApiEndpoint.get("show", "/credits")
  .addSuccess(CreditBalance)
  .addError(ReadErrors)
  .annotateContext(OpenApi.annotations({ identifier: "getCredits", summary: "Get the balance" }))

export const Credits = HttpApiGroup.make("credits")
  .add(showCreditsEndpoint)
  .annotate(OpenApi.Description, "The balance of the key's organization.")
  .middleware(Authenticated)

const UsageBusy = response("Too many concurrent usage requests.", "GatewayBusy")

const showStatementEndpoint = HttpApiEndpoint.get("show", "/statement")
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .addError(ReadErrors)
  .addError(InvalidQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getStatement", summary: "Get a monthly statement" }))

export const Statements = HttpApiGroup.make("statement").add(showStatementEndpoint).middleware(Authenticated)

const instant = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2}(?:\.\d+)?)(Z|[+-]\d{2}:\d{2}))?$/i

const toMillis = (text: string): number | undefined => {
  const [, date, time, zone] = instant.exec(text) ?? []
  const at = date === undefined ? undefined : instantOf(date, time, zone)
  return at !== undefined && at >= 0 ? at : undefined
}

const time = [parseWith(toMillis), "must be a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z"] as const

export const UsageQuery = Schema.Struct({
  by: queryParameter("by", ...oneOf("day", "model", "key", "tag"), "How to group the rows. The default is `day`."),
  from: queryParameter("from", ...time, "A date or an RFC 3339 time. The default is 30 days before `to`."),
  to: queryParameter(
    "to",
    ...time,
    "The exclusive end, in the same format. The default is now. At most 366 days after `from`, 31 with `by=tag`."
  )
})

const describe = <A>(counts: ReadonlyArray<RequestCount>, value: Schema.Schema<A>) =>
  Object.fromEntries(
    counts.map(({ description, name }) => [
      name,
      description === undefined ? value : value.annotations({ description })
    ])
  )

const Sum = Schema.Struct({
  day: describedField(Schema.String, "The UTC day, such as `2026-11-01`. Present with `by=day`."),
  model: describedField(
    Schema.NullOr(Schema.String),
    "Present with `by=model`. Null for requests without a known model."
  ),
  key: describedField(Schema.String, "The key's id. Present with `by=key`."),
  key_name: describedField(Schema.NullOr(Schema.String), "Present with `by=key`."),
  tag: describedField(
    Schema.NullOr(Schema.String),
    "Present with `by=tag`. Null for requests without a tag. Tags after the first 1,000 of a day are `other`."
  ),
  requests: Integer.annotations({ description: "The number of requests, including rejected and failed ones." }),
  ...describe(customerSums, Integer),
  charge_usd: Schema.Number.annotations({ description: "The charges minus refunds." })
})

const UsageList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Sum)
}).annotations({ identifier: "UsageList", description: "The organization's usage." })

const Tokens = Schema.NullOr(Integer)
const tokenCountDescription =
  "The prompt tokens of a chat request. All token counts and `web_searches` are null for images, videos and failed chat requests."
const Millis = Schema.NullOr(Integer)

const Request = Schema.Struct({
  id: Schema.String.annotations({ description: "The `x-request-id` of the response." }),
  object: Schema.Literal("request"),
  created_at: Integer.annotations({ description: "Unix seconds." }),
  surface: Surface,
  model: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  status: Integer.annotations({ description: "The HTTP status. It is 499 if the client disconnected first." }),
  code: Schema.NullOr(Schema.String).annotations({
    description:
      "The error's code. It is `stream_error` for a broken stream, and `client_closed` if the client disconnected first."
  }),
  error: RequestError,
  end_user: Schema.NullOr(Schema.String).annotations({ description: "The end user that the request names." }),
  tag: Schema.NullOr(Schema.String).annotations({ description: "The `x-gateway-tag` of the request." }),
  ...describe(customerCounts, Tokens),
  prompt_tokens: Tokens.annotations({ description: tokenCountDescription }),
  hold_usd: Schema.NullOr(Schema.Number),
  charge_usd: Schema.Number,
  attempts: Schema.Array(Schema.Struct({ outcome: Schema.String, ms: Integer })).annotations({
    description: "The attempts at providers, in order."
  }),
  first_byte_ms: Millis.annotations({
    description: "Milliseconds from the request to the first byte of the response."
  }),
  total_ms: Integer
}).annotations({ identifier: "Request", description: "The status, usage and charge of one request." })

const sumEndpoint = HttpApiEndpoint.get("sum", "/usage")
  .setUrlParams(UsageQuery)
  .addSuccess(UsageList)
  .addSuccess(csvBody("The same as CSV with a header line, for `accept: text/csv`."))
  .addError(ReadErrors)
  .addError(InvalidQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getUsage", summary: "Get usage and charges" }))

const findEndpoint = HttpApiEndpoint.get("find", "/usage/requests/:request_id")
  .setPath(
    Schema.Struct({
      request_id: Schema.String.annotations({
        description: "The `x-request-id`. If several requests have it, you get the newest.",
        examples: ["req_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f"]
      })
    })
  )
  .addSuccess(Request)
  .addError(ReadErrors)
  .addError(response("The organization has no such request.", "RequestNotFound"))
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getRequest", summary: "Get a request" }))

export const Usage = HttpApiGroup.make("usage").add(sumEndpoint).add(findEndpoint).middleware(Authenticated)
