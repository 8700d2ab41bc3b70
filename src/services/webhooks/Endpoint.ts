import { Schema } from "effect"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/Record.ts"

/** Where an organization's events go; its secret is never part of it. */
export const Endpoint = Schema.Struct({
  id: Schema.String,
  org: OrgId,
  url: Schema.String,
  created_at: UnixSeconds,
  disabled_at: TimeOrNull.annotations({ description: "Since it answered 410; null where it is enabled." }),
  pending: Schema.Number,
  failure: TextOrNull.annotations({ description: "Of the last try that failed." }),
  failed_at: TimeOrNull
}).annotations({ identifier: "WebhookEndpoint" })
export type Endpoint = typeof Endpoint.Type

/** What came back of an event that was sent to an endpoint to try it. */
export const EndpointTest = Schema.Struct({
  id: Schema.String,
  event: Schema.String.annotations({ description: "The id that was sent, `evt_…`." }),
  url: Schema.String,
  delivered: Schema.Boolean,
  status: Schema.NullOr(Schema.Number),
  duration_ms: Schema.Number,
  failure: TextOrNull,
  answer: Schema.String.annotations({ description: "The beginning of the answer's body." })
}).annotations({ identifier: "WebhookTest" })
export type EndpointTest = typeof EndpointTest.Type

/** An event on its way to one destination. */
export const Delivery = Schema.Struct({
  id: Schema.String.annotations({ description: "The event's, `evt_…`: it has one delivery for each destination." }),
  org: OrgId,
  endpoint: TextOrNull.annotations({ description: "Null: the URL came with a request." }),
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
export type Delivery = typeof Delivery.Type

/** `row` is where the next page goes on. */
export const ListedDelivery = Schema.Struct({ ...Delivery.fields, row: Schema.String })
export type ListedDelivery = typeof ListedDelivery.Type
