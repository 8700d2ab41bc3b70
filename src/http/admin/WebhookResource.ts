import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Redacted, Schema, Struct } from "effect"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../services/admin/Names.ts"
import * as Operations from "../../services/admin/WebhookOperations.ts"
import { body, field, Text } from "../../services/resources/ResourceInput.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { Delivery, Endpoint, EndpointTest, Webhooks } from "../../services/webhooks/Webhooks.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, ReportErrors, WriteAccess } from "./AdminAccess.ts"
import {
  cutPage,
  defaultLimit,
  organizationOf,
  organizationParameter,
  pageOf,
  pageParameters,
  parseNumericCursor,
  singlePage
} from "./AdminLists.ts"
import { answerOf, invalid, notFound, organizationReference, recordOf } from "./Fields.ts"

const nameFields = { org_name: TextOrNull }

export const NamedEndpoint = Schema.Struct({ ...Endpoint.fields, ...nameFields }).annotations({
  identifier: "WebhookEndpoint"
})

export const CreatedEndpoint = Schema.Struct({
  ...NamedEndpoint.fields,
  secret: TextOrNull.annotations({
    description:
      "The secret that verifies signatures. You cannot read it again. Null if an `Idempotency-Key` repeats the response."
  })
}).annotations({ identifier: "CreatedWebhookEndpoint" })

export const NamedDelivery = Schema.Struct({ ...Delivery.fields, ...nameFields }).annotations({
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

const listEndpoint = HttpApiEndpoint.get("list", "/webhooks")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...organizationParameter }))
  .addSuccess(pageOf(NamedEndpoint, "WebhookEndpoints"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List endpoints with their last failure, newest first")
  .annotateContext(
    exposeToMembers(pageOf(MemberEndpoint, "MemberEndpoints"), { parameters: ["limit", "after", "organization"] })
  )

const addEndpoint = HttpApiEndpoint.post("add", "/webhooks")
  .setPayload(
    body({
      organization: field("organization", ...organizationReference, "The organization's id or name."),
      url: field("url", Text, "must be a string", "A public http or https URL.")
    })
  )
  .addSuccess(CreatedEndpoint, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.add.summary)
  .annotateContext(exposeToMembers(Schema.Struct({ ...MemberEndpoint.fields, secret: CreatedEndpoint.fields.secret })))

const enableEndpoint = HttpApiEndpoint.post("enable", "/webhooks/:id/enable")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)
  .annotateContext(exposeToMembers(MemberEndpoint))

const removeEndpoint = HttpApiEndpoint.del("remove", "/webhooks/:id")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)
  .annotateContext(exposeToMembers(MemberEndpoint))

/** Excludes the response body, because an endpoint may be on an operator's host that is exempt from the address rules. */
const MemberTest = EndpointTest.pick("id", "event", "url", "delivered", "status", "duration_ms", "failure")

const testEndpoint = HttpApiEndpoint.post("test", "/webhooks/:id/test")
  .setPath(endpoint)
  .addSuccess(EndpointTest)
  .addError(ReportErrors)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.test.summary)
  .annotateContext(exposeToMembers(MemberTest))

const deliveriesEndpoint = HttpApiEndpoint.get("deliveries", "/webhooks/deliveries")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: queryParameter(
        "state",
        ...oneOf("pending", "delivered", "failed"),
        "The delivery's state. The default is all."
      ),
      endpoint: queryParameter("endpoint", Schema.String, "must be an endpoint's id", "An endpoint's id, `whe_…`.")
    })
  )
  .addSuccess(DeliveryPage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List deliveries, newest first; an event has one delivery per destination")
  .annotateContext(
    exposeToMembers(MemberDeliveries, { parameters: ["limit", "after", "organization", "state", "endpoint"] })
  )

const replayEndpoint = HttpApiEndpoint.post("replay", "/webhooks/deliveries/:event/replay")
  .setPath(event)
  .addSuccess(DeliveryPage)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.replay.summary)
  .annotateContext(exposeToMembers(MemberDeliveries))

export const WebhooksGroup = HttpApiGroup.make("webhooks")
  .add(listEndpoint)
  .add(addEndpoint)
  .add(deliveriesEndpoint)
  .add(replayEndpoint)
  .add(enableEndpoint)
  .add(testEndpoint)
  .add(removeEndpoint)
  .addError(ChangeErrors)

export const WebhooksHandlers = HttpApiBuilder.group(
  adminApiOf(WebhooksGroup),
  "webhooks",
  Effect.fnUntraced(function* (handlers) {
    const webhooks = yield* Webhooks
    const change =
      ({ run }: typeof Operations.enable | typeof Operations.remove) =>
      ({ path: { id } }: { readonly path: typeof endpoint.Type }) =>
        recordOf(run(id)).pipe(Effect.flatMap(nameOne), Effect.catchTags({ EndpointNotFound: notFound }))
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          const rows = yield* webhooks.page(scope, { org, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Endpoint>, Struct.get("id"))
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("add", ({ payload: { organization, url } }) =>
        answerOf(Operations.add.run(organization, url), (record, issued) => ({
          ...record,
          secret: issued === undefined ? null : Redacted.value(issued.secret)
        })).pipe(
          Effect.flatMap(nameOne),
          Effect.catchTags({
            OrganizationNotFound: invalid("organization"),
            TooManyEndpoints: invalid(null),
            UrlRefused: invalid("url")
          })
        )
      )
      .handle("enable", change(Operations.enable))
      .handle("remove", change(Operations.remove))
      .handle("test", ({ path: { id } }) => Operations.test.run(id).pipe(Effect.catchTag("EndpointNotFound", notFound)))
      .handle("deliveries", ({ urlParams: { endpoint, limit = defaultLimit, state, ...filters } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(filters.organization)
          const after = yield* parseNumericCursor(scope, filters.after)
          const rows = yield* webhooks.deliveries(scope, { org, state, endpoint, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Delivery>, Struct.get("row"))
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("replay", ({ path: { event } }) =>
        recordOf(Operations.replay.run(event)).pipe(
          Effect.flatMap(nameAll),
          Effect.map(singlePage),
          Effect.catchTags({ EventNotFound: notFound })
        )
      )
  })
)
