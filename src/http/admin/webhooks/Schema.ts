import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import * as Operations from "../../../services/admin/WebhookOperations.ts"
import { body, field, Text } from "../../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { Delivery, Endpoint, EndpointTest } from "../../../services/webhooks/Endpoint.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, ReportErrors, WriteAccess } from "../Access.ts"
import { organizationParameter } from "../Filters.ts"
import { membersSee, OpenToMembers } from "../Members.ts"
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

const MemberEndpoint = NamedEndpoint.pick(
  "id",
  "org",
  "org_name",
  "url",
  "created_at",
  "disabled_at",
  "pending",
  "failure",
  "failed_at"
)

const MemberDelivery = NamedDelivery.pick(
  "id",
  "org",
  "org_name",
  "endpoint",
  "url",
  "type",
  "at",
  "state",
  "tries",
  "tried_at",
  "status",
  "failure",
  "next_at"
)
const MemberDeliveries = pageOf(MemberDelivery, "MemberDeliveries")

const endpoint = Schema.Struct({ id: Schema.String.annotations({ description: "An endpoint's id, `whe_…`." }) })
const event = Schema.Struct({ event: Schema.String.annotations({ description: "An event's id, `evt_…`." }) })
const DeliveryPage = pageOf(NamedDelivery, "WebhookDeliveries")

const list = HttpApiEndpoint.get("list", "/webhooks")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...organizationParameter }))
  .addSuccess(pageOf(NamedEndpoint, "WebhookEndpoints"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List endpoints and what last failed at each, newest first")
  .annotate(
    OpenToMembers,
    membersSee(pageOf(MemberEndpoint, "MemberEndpoints"), { parameters: ["limit", "after", "organization"] })
  )

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
  .annotate(
    OpenToMembers,
    membersSee(Schema.Struct({ ...MemberEndpoint.fields, secret: CreatedEndpoint.fields.secret }))
  )

const enable = HttpApiEndpoint.post("enable", "/webhooks/:id/enable")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)
  .annotate(OpenToMembers, membersSee(MemberEndpoint))

const remove = HttpApiEndpoint.del("remove", "/webhooks/:id")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)
  .annotate(OpenToMembers, membersSee(MemberEndpoint))

/** Not the answer: an endpoint may be at a host of the operator's that is exempt from the rules for addresses. */
const MemberTest = EndpointTest.pick("id", "event", "url", "delivered", "status", "duration_ms", "failure")

const test = HttpApiEndpoint.post("test", "/webhooks/:id/test")
  .setPath(endpoint)
  .addSuccess(EndpointTest)
  .addError(ReportErrors)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.test.summary)
  .annotate(OpenToMembers, membersSee(MemberTest))

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
  .annotate(
    OpenToMembers,
    membersSee(MemberDeliveries, { parameters: ["limit", "after", "organization", "state", "endpoint"] })
  )

const replay = HttpApiEndpoint.post("replay", "/webhooks/deliveries/:event/replay")
  .setPath(event)
  .addSuccess(DeliveryPage)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.replay.summary)
  .annotate(OpenToMembers, membersSee(MemberDeliveries))

export const WebhooksGroup = HttpApiGroup.make("webhooks")
  .add(list)
  .add(add)
  .add(deliveries)
  .add(replay)
  .add(enable)
  .add(test)
  .add(remove)
  .addError(ChangeErrors)
