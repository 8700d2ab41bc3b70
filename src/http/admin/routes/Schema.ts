import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { MarginRecord } from "../../../services/admin/CatalogRecord.ts"
import * as Operations from "../../../services/admin/RouteOperations.ts"
import { RouteRecord } from "../../../services/admin/RouteRecord.ts"
import { RouteControl } from "../../../services/control/RouteControls.ts"
import { body, field, optionalField, Text } from "../../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { Filled, filledProblem } from "../Fields.ts"
import { pageOf } from "../Page.ts"

export const ServedRoute = Schema.Struct({
  ...RouteRecord.fields,
  surface: Schema.NullOr(Schema.Literal("chat", "image", "video")).annotations({
    description: "Null, as preference and weight, where this instance's catalog does not have the route."
  }),
  preference: Schema.NullOr(Schema.Number),
  weight: Schema.NullOr(Schema.Number),
  off_reason: TextOrNull.annotations({ description: "Why it cannot be called here." }),
  margins: Schema.Array(MarginRecord),
  loss: Schema.Boolean.annotations({ description: "Whether a price is below its cost." })
}).annotations({ identifier: "ServedRoute" })

const RoutesAnswer = Schema.Struct({
  sandbox: Schema.Boolean.annotations({ description: "Whether models without a credential get made-up answers." }),
  ...pageOf(ServedRoute, "Routes").fields
}).annotations({ identifier: "Routes" })

const route = field("route", Text, "must be a route's id", "Such as `gpt-5@openai`.")
const routeBody = body({ route })

const list = HttpApiEndpoint.get("list", "/routes")
  .addSuccess(RoutesAnswer)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Each route: circuit, last error, price and cost; those that are off too; whole")

const disable = HttpApiEndpoint.post("disable", "/routes/disable")
  .setPayload(body({ route, note: optionalField("note", Filled, filledProblem, "Why.") }))
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.disable.summary)

const enable = HttpApiEndpoint.post("enable", "/routes/enable")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)

const reset = HttpApiEndpoint.post("reset", "/routes/reset")
  .setPayload(routeBody)
  .addSuccess(RouteControl)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.reset.summary)

export const RoutesGroup = HttpApiGroup.make("routes")
  .add(list)
  .add(disable)
  .add(enable)
  .add(reset)
  .addError(ChangeErrors)
