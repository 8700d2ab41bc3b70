import { Effect, Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { Organizations } from "../access/Organizations.ts"
import { type Delivery, type Endpoint, type EndpointNotFound, Webhooks } from "../webhooks/Webhooks.ts"
import { Audit } from "./Audit.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "./Record.ts"

export const EndpointRecord = Schema.Struct({
  id: Schema.String,
  org: Schema.String,
  url: Schema.String,
  created_at: UnixSeconds,
  disabled_at: TimeOrNull,
  pending: Schema.Number,
  failure: TextOrNull,
  failed_at: TimeOrNull
}).annotations({ identifier: "WebhookEndpoint" })
export type EndpointRecord = typeof EndpointRecord.Type

export const DeliveryRecord = Schema.Struct({
  id: Schema.String,
  org: Schema.String,
  endpoint: TextOrNull,
  url: Schema.String,
  type: Schema.String,
  at: UnixSeconds,
  state: Schema.Literal("pending", "delivered", "failed"),
  tries: Schema.Number,
  tried_at: TimeOrNull,
  status: Schema.NullOr(Schema.Number),
  failure: TextOrNull,
  next_at: TimeOrNull
}).annotations({ identifier: "WebhookDelivery" })
export type DeliveryRecord = typeof DeliveryRecord.Type

const ReplayedDeliveries = Schema.Array(DeliveryRecord)
const ReissuedSecret = Schema.Struct({ id: Schema.String })

export const endpointRecord = (endpoint: Endpoint): EndpointRecord => ({
  id: endpoint.id,
  org: endpoint.orgId,
  url: endpoint.url,
  created_at: endpoint.createdAt,
  disabled_at: endpoint.disabledAt,
  pending: endpoint.pending,
  failure: endpoint.failure,
  failed_at: endpoint.failedAt
})

export const deliveryRecord = (delivery: Delivery): DeliveryRecord => ({
  id: delivery.eventId,
  org: delivery.orgId,
  endpoint: delivery.endpointId,
  url: delivery.url,
  type: delivery.type,
  at: delivery.createdAt,
  state: delivery.state,
  tries: delivery.tries,
  tried_at: delivery.triedAt,
  status: delivery.status,
  failure: delivery.failure,
  next_at: delivery.nextAt
})

const ofEndpoint = {
  record: EndpointRecord,
  targetOf: ({ id }: EndpointRecord) => id,
  orgOf: ({ org }: EndpointRecord) => org
}

/** With the secret, once. */
export const addEndpoint = (organization: string, url: string) =>
  Effect.gen(function* () {
    const { create } = yield* Audit
    const { keep } = yield* Organizations
    const { add } = yield* Webhooks
    const run = Effect.flatMap(keep(organization), ({ id: org }) => add({ org, url }))
    return yield* create({
      ...ofEndpoint,
      action: "webhooks.add",
      input: { organization, url },
      run,
      recordOf: ({ endpoint }) => endpointRecord(endpoint)
    })
  })

const changeEndpoint = (
  action: string,
  id: string,
  run: (webhooks: typeof Webhooks.Service) => Effect.Effect<Endpoint, EndpointNotFound>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const webhooks = yield* Webhooks
    return yield* change({
      ...ofEndpoint,
      action: `webhooks.${action}`,
      input: {},
      target: id,
      find: (id) => Effect.map(webhooks.find(id), endpointRecord),
      run: () => run(webhooks),
      recordOf: endpointRecord
    })
  })

export const removeEndpoint = (id: string) => changeEndpoint("remove", id, ({ remove }) => remove(id))
export const enableEndpoint = (id: string) => changeEndpoint("enable", id, ({ enable }) => enable(id))

/** Sends an event to all its destinations again. */
export const replayEvent = (id: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { deliveries, replay } = yield* Webhooks
    return yield* change({
      action: "webhooks.replay",
      input: {},
      target: id,
      record: ReplayedDeliveries,
      find: (event) => Effect.map(deliveries({ event }), (all) => all.map(deliveryRecord)),
      run: replay,
      recordOf: (all) => all.map(deliveryRecord),
      targetOf: () => id,
      orgOf: ([first]) => first?.org
    })
  })

/** Replaces the secret that signs for the URLs of requests, at once. */
export const reissueSecret = (organization: string) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const { find } = yield* Organizations
    const { secret } = yield* Webhooks
    return yield* change({
      action: "webhooks.reissue_secret",
      input: {},
      target: organization,
      record: ReissuedSecret,
      find: (reference) => Effect.map(find(reference), ({ id }) => ({ id })),
      run: (id) => Effect.as(secret(OrgId.make(id), { reissue: true }), { id }),
      recordOf: (record) => record,
      targetOf: ({ id }) => id,
      orgOf: ({ id }) => id
    })
  })
