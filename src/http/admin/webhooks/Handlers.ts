import { HttpApiBuilder } from "@effect/platform"
import { Effect, identity, Redacted, Struct } from "effect"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../../services/admin/Names.ts"
import * as Operations from "../../../services/admin/WebhookOperations.ts"
import type { Delivery, Endpoint } from "../../../services/webhooks/Endpoint.ts"
import { Webhooks } from "../../../services/webhooks/Webhooks.ts"
import { AdminApi } from "../AdminApi.ts"
import { answerOf, invalid, notFound, recordOf } from "../Fields.ts"
import { organizationOf } from "../Filters.ts"
import { cutPage, defaultListed, numberedAfter, wholePage } from "../Page.ts"

const nameInScope = <Record extends { readonly org: string }>(record: Record) =>
  Effect.flatMap(CurrentActor, ({ scope }) => nameOne(scope, record))
const nameAllInScope = <Record extends { readonly org: string }>(records: ReadonlyArray<Record>) =>
  Effect.flatMap(CurrentActor, ({ scope }) => nameAll(scope, records))

export const WebhooksHandlers = HttpApiBuilder.group(
  AdminApi,
  "webhooks",
  Effect.fnUntraced(function* (handlers) {
    const webhooks = yield* Webhooks
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          const rows = yield* webhooks.page(scope, { org, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Endpoint>, Struct.get("id"))
          return { data: yield* nameAll(scope, data), ...page }
        })
      )
      .handle("add", ({ payload: { organization, url } }) =>
        answerOf(Operations.add.run(organization, url), (record, made) => ({
          ...record,
          secret: made === undefined ? null : Redacted.value(made.secret)
        })).pipe(
          Effect.flatMap(nameInScope),
          Effect.catchTags({
            OrganizationNotFound: invalid("organization"),
            TooManyEndpoints: invalid(null),
            UrlRefused: invalid("url")
          })
        )
      )
      .handle("enable", ({ path: { id } }) =>
        recordOf(Operations.enable.run(id)).pipe(
          Effect.flatMap(nameInScope),
          Effect.catchTags({ EndpointNotFound: notFound })
        )
      )
      .handle("remove", ({ path: { id } }) =>
        recordOf(Operations.remove.run(id)).pipe(
          Effect.flatMap(nameInScope),
          Effect.catchTags({ EndpointNotFound: notFound })
        )
      )
      .handle("test", ({ path: { id } }) => Operations.test.run(id).pipe(Effect.catchTag("EndpointNotFound", notFound)))
      .handle("deliveries", ({ urlParams: { endpoint, limit = defaultListed, state, ...given } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(given.organization)
          const after = yield* numberedAfter(scope, given.after)
          const rows = yield* webhooks.deliveries(scope, { org, state, endpoint, after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<Delivery>, Struct.get("row"))
          return { data: yield* nameAll(scope, data), ...page }
        })
      )
      .handle("replay", ({ path: { event } }) =>
        recordOf(Operations.replay.run(event)).pipe(
          Effect.flatMap(nameAllInScope),
          Effect.map(wholePage),
          Effect.catchTags({ EventNotFound: notFound })
        )
      )
  })
)
