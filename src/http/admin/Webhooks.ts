import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Redacted, Schema, Struct } from "effect"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../services/admin/Names.ts"
import * as Operations from "../../services/admin/WebhookOperations.ts"
import { body, field, Text } from "../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { Delivery, Endpoint, EndpointTest, Webhooks } from "../../services/webhooks/Webhooks.ts"
import { oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, ReadAccess, ReportErrors, WriteAccess } from "./Access.ts"
import { answerOf, invalid, notFound, organizationReference, recordOf } from "./Fields.ts"
import { organizationOf, organizationParameter } from "./Filters.ts"
import { membersSee } from "./Members.ts"
import { cutPage, defaultListed, numberedAfter, pageOf, pageParameters, wholePage } from "./Page.ts"

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
  .annotateContext(
    membersSee(pageOf(MemberEndpoint, "MemberEndpoints"), { parameters: ["limit", "after", "organization"] })
  )

const add = HttpApiEndpoint.post("add", "/webhooks")
  .setPayload(
    body({
      organization: field("organization", ...organizationReference, "An organization's id or name."),
      url: field("url", Text, "must be a text", "A public http or https URL.")
    })
  )
  .addSuccess(CreatedEndpoint, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.add.summary)
  .annotateContext(membersSee(Schema.Struct({ ...MemberEndpoint.fields, secret: CreatedEndpoint.fields.secret })))

const enable = HttpApiEndpoint.post("enable", "/webhooks/:id/enable")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.enable.summary)
  .annotateContext(membersSee(MemberEndpoint))

const remove = HttpApiEndpoint.del("remove", "/webhooks/:id")
  .setPath(endpoint)
  .addSuccess(NamedEndpoint)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)
  .annotateContext(membersSee(MemberEndpoint))

/** Not the answer: an endpoint may be at a host of the operator's that is exempt from the rules for addresses. */
const MemberTest = EndpointTest.pick("id", "event", "url", "delivered", "status", "duration_ms", "failure")

const test = HttpApiEndpoint.post("test", "/webhooks/:id/test")
  .setPath(endpoint)
  .addSuccess(EndpointTest)
  .addError(ReportErrors)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.test.summary)
  .annotateContext(membersSee(MemberTest))

const deliveries = HttpApiEndpoint.get("deliveries", "/webhooks/deliveries")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      state: parameter("state", ...oneOf("pending", "delivered", "failed"), "Where they stand; all if left out."),
      endpoint: parameter("endpoint", Schema.String, "must be an endpoint's id", "An endpoint's id, `whe_…`.")
    })
  )
  .addSuccess(DeliveryPage)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List deliveries, newest first; an event has one per destination")
  .annotateContext(
    membersSee(MemberDeliveries, { parameters: ["limit", "after", "organization", "state", "endpoint"] })
  )

const replay = HttpApiEndpoint.post("replay", "/webhooks/deliveries/:event/replay")
  .setPath(event)
  .addSuccess(DeliveryPage)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.replay.summary)
  .annotateContext(membersSee(MemberDeliveries))

export const WebhooksGroup = HttpApiGroup.make("webhooks")
  .add(list)
  .add(add)
  .add(deliveries)
  .add(replay)
  .add(enable)
  .add(test)
  .add(remove)
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
      .handle("list", ({ urlParams: { after, limit = defaultListed, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          const rows = yield* webhooks.page(scope, { org, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Endpoint>, Struct.get("id"))
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("add", ({ payload: { organization, url } }) =>
        answerOf(Operations.add.run(organization, url), (record, made) => ({
          ...record,
          secret: made === undefined ? null : Redacted.value(made.secret)
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
      .handle("deliveries", ({ urlParams: { endpoint, limit = defaultListed, state, ...given } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(given.organization)
          const after = yield* numberedAfter(scope, given.after)
          const rows = yield* webhooks.deliveries(scope, { org, state, endpoint, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Delivery>, Struct.get("row"))
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("replay", ({ path: { event } }) =>
        recordOf(Operations.replay.run(event)).pipe(
          Effect.flatMap(nameAll),
          Effect.map(wholePage),
          Effect.catchTags({ EventNotFound: notFound })
        )
      )
  })
)
