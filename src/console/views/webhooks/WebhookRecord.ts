import type { CreatedEndpoint, NamedDelivery, NamedEndpoint } from "../../../http/admin/Webhooks.ts"

export type EndpointRecord = typeof NamedEndpoint.Encoded
export type IssuedEndpoint = typeof CreatedEndpoint.Encoded
export type DeliveryRecord = typeof NamedDelivery.Encoded
