import { Effect, Schema, Struct } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { Delivery, Endpoint, EventNotFound, Webhooks } from "../webhooks/Webhooks.ts"
import { CurrentActor } from "./Actor.ts"
import { Audit } from "./Audit.ts"
import { auditResource, operation } from "./Operation.ts"
import { Organizations } from "./Organizations.ts"

const endpoints = auditResource({
  name: "webhooks",
  record: Endpoint,
  find: (scope, id) => Effect.flatMap(Webhooks, ({ find }) => find(scope, id))
})

/** With the secret, once. */
export const add = operation("Send an organization's events to a URL", (organization: string, url: string) => {
  const run = Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    const { id: org } = yield* Effect.flatMap(Organizations, ({ keep }) => keep(scope, organization))
    return yield* Effect.flatMap(Webhooks, ({ add }) => add({ org, url }))
  })
  return endpoints.create("add", { organization, url }, run, ({ endpoint }) => endpoint)
})

export const remove = operation("Remove an endpoint and everything that was written for it", (id: string) =>
  endpoints.change("remove", id, {}, (scope, id) => Effect.flatMap(Webhooks, ({ remove }) => remove(scope, id)))
)

export const enable = operation("Send again to an endpoint that was disabled because it answered 410", (id: string) =>
  endpoints.change("enable", id, {}, (scope, id) => Effect.flatMap(Webhooks, ({ enable }) => enable(scope, id)))
)

/** Nothing changes, so that the audit has nothing of it. */
export const test = operation("Send an event to an endpoint now, and tell what came back", (id: string) =>
  Effect.gen(function* () {
    const { scope } = yield* CurrentActor
    const { test } = yield* Webhooks
    return yield* test(scope, id)
  })
)

const Replayed = Schema.Array(Delivery)

export const replay = operation("Send an event again to all its destinations, under the same id", (id: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { deliveries, replay } = yield* Webhooks
    const { scope } = yield* CurrentActor
    return yield* change({
      action: "webhooks.replay",
      input: {},
      target: id,
      record: Replayed,
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

const Reissued = Schema.Struct({ id: Schema.String })

export const reissueSecret = operation(
  "Replace the secret that signs for the URLs of requests, at once",
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
        record: Reissued,
        find: (reference) => Effect.map(find(scope, reference), ({ id }) => ({ id })),
        run: (id) => Effect.as(secret(OrgId.make(id), { reissue: true }), { id }),
        recordOf: (record) => record,
        targetOf: ({ id }) => id,
        orgOf: ({ id }) => id
      })
    })
)
