import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { described, Integer } from "../../domain/Constraints.ts"
import { Surface } from "../../domain/Model.ts"
import { instantOf } from "../../domain/Moment.ts"
import { RequestError } from "../../domain/RequestError.ts"
import { customerCounts, customerSums, type RequestCount } from "../../services/requests/RequestCounts.ts"
import { Statement } from "../../services/statements/Statement.ts"
import { NoSuchRequest, ReadErrors, UsageBusy, WrongQuery } from "../errors/Schemas.ts"
import { Authenticated } from "../schema/Headers.ts"
import { monthParameter, oneOf, parameter, parsedBy } from "../schema/Query.ts"

const CreditBalance = Schema.Struct({
  object: Schema.Literal("credits"),
  available_usd: Schema.Number.annotations({ description: "Spendable: the balance minus what is held." }),
  balance_usd: Schema.Number.annotations({ description: "The settled balance." }),
  held_usd: Schema.Number.annotations({ description: "Reserved by requests in flight." }),
  cap_usd: Schema.NullOr(Schema.Number).annotations({
    description: "What the organization may spend in a period; null without a spending cap."
  }),
  cap_spent_usd: Schema.NullOr(Schema.Number).annotations({
    description: "What it was charged in the running period of the cap; null without one."
  }),
  cap_resets_at: Schema.NullOr(Schema.Number).annotations({
    description: "When the next period begins, in Unix seconds; null without a cap, and for one in total."
  })
}).annotations({
  identifier: "Credits",
  description: "The balance of the key's organization, and its spending cap, in USD."
})

const showCredits = HttpApiEndpoint.get("show", "/credits")
  .addSuccess(CreditBalance)
  .addError(ReadErrors)
  .annotateContext(OpenApi.annotations({ identifier: "getCredits", summary: "Get the balance" }))

export const Credits = HttpApiGroup.make("credits")
  .add(showCredits)
  .annotate(OpenApi.Description, "What the organization that owns the key can spend.")
  .middleware(Authenticated)

const showStatement = HttpApiEndpoint.get("show", "/statement")
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .addError(ReadErrors)
  .addError(WrongQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getStatement", summary: "Get the statement of a month" }))

export const Statements = HttpApiGroup.make("statement").add(showStatement).middleware(Authenticated)

const instant = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2}(?:\.\d+)?)(Z|[+-]\d{2}:\d{2}))?$/i

const toMillis = (text: string): number | undefined => {
  const [, date, time, zone] = instant.exec(text) ?? []
  const at = date === undefined ? undefined : instantOf(date, time, zone)
  return at !== undefined && at >= 0 ? at : undefined
}

const time = [parsedBy(toMillis), "must be a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z"] as const

export const UsageQuery = Schema.Struct({
  by: parameter("by", ...oneOf("day", "model", "key", "tag"), "What to add up by, `day` if left out."),
  from: parameter("from", ...time, "A date or an RFC 3339 time; 30 days before `to` if left out."),
  to: parameter("to", ...time, "The same, exclusive; now if left out. At most 366 days after `from`, 31 with `by=tag`.")
})

const describe = <A>(counts: ReadonlyArray<RequestCount>, value: Schema.Schema<A>) =>
  Object.fromEntries(
    counts.map(({ description, name }) => [
      name,
      description === undefined ? value : value.annotations({ description })
    ])
  )

const Sum = Schema.Struct({
  day: described(Schema.String, "Of UTC, such as `2026-11-01`; with `by=day`."),
  model: described(
    Schema.NullOr(Schema.String),
    "With `by=model`; null: requests without a model, or for one that does not exist."
  ),
  key: described(Schema.String, "The key's id; with `by=key`."),
  key_name: described(Schema.NullOr(Schema.String), "With `by=key`."),
  tag: described(
    Schema.NullOr(Schema.String),
    "With `by=tag`; null: requests without one. Tags after the first 1,000 of a day are `other`."
  ),
  requests: Integer.annotations({ description: "Also those that were refused or failed." }),
  ...describe(customerSums, Integer),
  charge_usd: Schema.Number.annotations({ description: "What was charged, less what was given back." })
})

const UsageList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Sum)
}).annotations({ identifier: "UsageList", description: "The organization's usage." })

const Tokens = Schema.NullOr(Integer)
const uncounted =
  "Of a chat, as `web_searches` and the other tokens; null for images, videos, and chats that gave nothing."
const Millis = Schema.NullOr(Integer)

const Request = Schema.Struct({
  id: Schema.String.annotations({ description: "The answer's `x-request-id`." }),
  object: Schema.Literal("request"),
  created_at: Integer.annotations({ description: "Unix seconds." }),
  surface: Surface,
  model: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  status: Integer.annotations({ description: "The HTTP status; 499 where the client left first." }),
  code: Schema.NullOr(Schema.String).annotations({
    description:
      "The error's code; `stream_error` for a stream that broke, `client_closed` where the client left first."
  }),
  error: RequestError,
  end_user: Schema.NullOr(Schema.String).annotations({ description: "Whom the request named as its user." }),
  tag: Schema.NullOr(Schema.String).annotations({ description: "Its `x-gateway-tag`." }),
  ...describe(customerCounts, Tokens),
  prompt_tokens: Tokens.annotations({ description: uncounted }),
  hold_usd: Schema.NullOr(Schema.Number),
  charge_usd: Schema.Number,
  attempts: Schema.Array(Schema.Struct({ outcome: Schema.String, ms: Integer })).annotations({
    description: "The tries at providers, in order."
  }),
  first_byte_ms: Millis.annotations({ description: "From the request to the answer's first byte." }),
  total_ms: Integer
}).annotations({ identifier: "Request", description: "What became of one request." })

const Csv = Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/csv" })).annotations({
  description: "The same with a line of names, for `accept: text/csv`."
})

const sum = HttpApiEndpoint.get("sum", "/usage")
  .setUrlParams(UsageQuery)
  .addSuccess(UsageList)
  .addSuccess(Csv)
  .addError(ReadErrors)
  .addError(WrongQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getUsage", summary: "Add up what was used and charged" }))

const find = HttpApiEndpoint.get("find", "/usage/requests/:request_id")
  .setPath(
    Schema.Struct({
      request_id: Schema.String.annotations({
        description: "The `x-request-id`; of several requests the newest.",
        examples: ["req_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f"]
      })
    })
  )
  .addSuccess(Request)
  .addError(ReadErrors)
  .addError(NoSuchRequest)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getRequest", summary: "See what became of a request" }))

export const Usage = HttpApiGroup.make("usage").add(sum).add(find).middleware(Authenticated)
