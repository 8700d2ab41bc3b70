import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import * as Operations from "../../../services/admin/WebhookOperations.ts"
import { body, field, Text } from "../../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { Delivery, Endpoint } from "../../../services/webhooks/Endpoint.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { organizationParameter } from "../Filters.ts"
import { pageOf, pageParameters } from "../Page.ts"

const named = { org_name: TextOrNull }

export const NamedEndpoint = Schema.Struct({ ...Endpoint.fields, ...named }).annotations({
  identifier: "WebhookEndpoint"
})

export const CreatedEndpoint = Schema.Struct({
  ...NamedEndpoint.fields,
  secret: TextOrNull.annotations({
    description: "Verifies its signatures; shown only here, null in a repeated answer."
  })
}).annotations({ identifier: "CreatedWebhookEndpoint" })

export const NamedDelivery = Schema.Struct({ ...Delivery.fields, ...named }).annotations({
  identifier: "WebhookDelivery"
})

const endpoint = Schema.Struct({ id: Schema.String.annotations({ description: "An endpoint's id, `whe_…`." }) })
const event = Schema.Struct({ event: Schema.String.annotations({ description: "An event's id, `evt_…`." }) })
const DeliveryPage = pageOf(NamedDelivery, "WebhookDeliveries")

const list = HttpApiEndpoint.get("list", "/webhooks")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...organizationParameter }))
  .addSuccess(pageOf(NamedEndpoint, "WebhookEndpoints"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List endpoints and what last failed at each, newest first")

const add = HttpApiEndpoint.post("add", "/webhooks")
  .setPayload(
    body({
      organization: field("organization", Text, "must be an id or a name", "An organization's id or name."),
      url: field("url", Text, "must be a text", "A public http or https URL.")
    })
  )
  .addSuccess(CreatedEndpoint, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.add.summary)

const enable = HttpApiEndpoint.post("enable", "/webhooks/:id/enable")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)

const remove = HttpApiEndpoint.del("remove", "/webhooks/:id")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)

const deliveries = HttpApiEndpoint.get("deliveries", "/webhooks/deliveries")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: parameter(
        "state",
        Schema.Literal("pending", "delivered", "failed"),
        "must be one of pending, delivered, failed",
        "Where they stand; all if left out."
      ),
      endpoint: parameter("endpoint", Schema.String, "must be an endpoint's id", "An endpoint's id, `whe_…`.")
    })
  )
  .addSuccess(DeliveryPage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List deliveries, newest first; an event has one per destination")

const replay = HttpApiEndpoint.post("replay", "/webhooks/deliveries/:event/replay")
  .setPath(event)
  .addSuccess(DeliveryPage)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.replay.summary)

export const WebhooksGroup = HttpApiGroup.make("webhooks")
  .add(list)
  .add(add)
  .add(deliveries)
  .add(replay)
  .add(enable)
  .add(remove)
  .addError(ChangeErrors)
