import { Effect, Schema, Struct } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { Delivery, Endpoint, EventNotFound, Webhooks } from "../webhooks/Webhooks.ts"
import { CurrentActor } from "./Actor.ts"
import { auditResource, operation } from "./AdminOperation.ts"
import { Audit } from "./AuditLog.ts"
import { Organizations } from "./Organizations.ts"

const endpoints = auditResource({
  name: "webhooks",
  record: Endpoint,
  find: (scope, id) => Effect.flatMap(Webhooks, ({ find }) => find(scope, id))
})

/** Also returns the signing secret, which no other operation returns. */
export const add = operation(
  "Add a webhook endpoint, which receives an organization's events",
  (organization: string, url: string) => {
    const run = Effect.gen(function* () {
      const { scope } = yield* CurrentActor
      const { id: org } = yield* Effect.flatMap(Organizations, ({ findLocked }) => findLocked(scope, organization))
      return yield* Effect.flatMap(Webhooks, ({ add }) => add({ org, url }))
    })
    return endpoints.create("add", { organization, url }, run, ({ endpoint }) => endpoint)
  }
)

export const remove = operation("Remove an endpoint and its deliveries", (id: string) =>
  endpoints.change("remove", id, {}, (scope, id) => Effect.flatMap(Webhooks, ({ remove }) => remove(scope, id)))
)

export const enable = operation("Enable an endpoint that was disabled because it returned 410", (id: string) =>
  endpoints.change("enable", id, {}, (scope, id) => Effect.flatMap(Webhooks, ({ enable }) => enable(scope, id)))
)

/** Not audited, because it changes nothing. */
export const test = operation("Send a test event to an endpoint now and return the response", (id: string) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    const { test } = yield* Webhooks
    return yield* test(scope, id)
  })
)

const Deliveries = Schema.Array(Delivery)

export const replay = operation("Send an event again to all its destinations, with the same id", (id: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { deliveries, replay } = yield* Webhooks
    const { scope } = yield* CurrentActor
    return yield* change({
      action: "webhooks.replay",
      input: {},
      target: id,
      record: Deliveries,
      find: (event) =>
        Effect.filterOrFail(
          deliveries(scope, { event }),
          (all) => all.length > 0,
          () => new EventNotFound({ id: event })
        ),
      run: (event) => replay(scope, event),
      recordOf: (all) => all.map(Struct.omit("row")),
      targetOf: () => id,
      orgOf: ([first]) => first?.org
    })
  })
)

const SecretOwner = Schema.Struct({ id: Schema.String })

export const reissueSecret = operation(
  "Replace the signing secret for events that are sent to a request's webhook_url. The old one stops working immediately",
  (organization: string) =>
    Effect.gen(function* () {
      const { change } = yield* Audit
      const { find } = yield* Organizations
      const { secret } = yield* Webhooks
      const { scope } = yield* CurrentActor
      return yield* change({
        action: "webhooks.reissue_secret",
        input: {},
        target: organization,
        record: SecretOwner,
        find: (reference) => Effect.map(find(scope, reference), ({ id }) => ({ id })),
        run: (id) => Effect.as(secret(OrgId.make(id), { reissue: true }), { id }),
        recordOf: (record) => record,
        targetOf: ({ id }) => id,
        orgOf: ({ id }) => id
      })
    })
)
