import { SqlClient } from "@effect/sql"
import { Clock, Context, Data, Duration, Effect, Layer, Redacted, Schema } from "effect"
import type { GatewayBusy } from "../../domain/Failure.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { explainFailure, Fetcher } from "../media/Fetcher.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../resources/ResourceRecord.ts"
import { Ids } from "../runtime/Ids.ts"
import { makeBoundedKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { idFor, listing, numberOf } from "../sql/Listing.ts"
import { inScope, lockName, recordsOf, rowsOf, toStorable, whenDefined } from "../sql/SqlStatement.ts"
import { makeSend, newSecret } from "./WebhookDelivery.ts"
import { type WebhookEvent, webhookSecretOf } from "./WebhookEvents.ts"

/** A URL that receives an organization's events. Never contains the signing secret. */
export const Endpoint = Schema.Struct({
  id: Schema.String,
  org: OrgId,
  url: Schema.String,
  created_at: UnixSeconds,
  disabled_at: TimeOrNull.annotations({
    description: "The time of the 410 that disabled it, or null if it is enabled."
  }),
  pending: Schema.Number,
  failure: TextOrNull.annotations({ description: "The failure of the last failed try." }),
  failed_at: TimeOrNull
}).annotations({ identifier: "WebhookEndpoint" })
export type Endpoint = typeof Endpoint.Type

/** The result of a test event. */
export const EndpointTest = Schema.Struct({
  id: Schema.String,
  event: Schema.String.annotations({ description: "The id of the event, `evt_…`." }),
  url: Schema.String,
  delivered: Schema.Boolean,
  status: Schema.NullOr(Schema.Number),
  duration_ms: Schema.Number,
  failure: TextOrNull,
  answer: Schema.String.annotations({ description: "The beginning of the response body." })
}).annotations({ identifier: "WebhookTest" })
export type EndpointTest = typeof EndpointTest.Type

/** The delivery of one event to one URL. */
export const Delivery = Schema.Struct({
  id: Schema.String.annotations({
    description: "The id of the event, `evt_…`. An event has one delivery per destination."
  }),
  org: OrgId,
  endpoint: TextOrNull.annotations({ description: "Null if the URL was sent with a request." }),
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

/** `row` is the cursor of the next page. */
const ListedDelivery = Schema.Struct({ ...Delivery.fields, row: Schema.String })
type ListedDelivery = typeof ListedDelivery.Type

/** The maximum number of concurrent tests of all organizations. Each organization runs one at a time. */
const maxConcurrentTests = 32
/** The maximum number of waiting tests per organization, because each occupies a request of the admin API. */
const maxQueuedTests = 4
const answerBytes = 500

const TestTarget = Schema.Struct({ orgId: Schema.String, url: Schema.String, secret: Schema.String })

/**
 * Returns a function that sends a test event to an endpoint, even to a disabled one, and stores nothing. Tests of an
 * organization run one after another, and fail if too many wait.
 */
const makeEndpointTests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const send = yield* makeSend
  const tests = yield* Effect.makeSemaphore(maxConcurrentTests)
  const withOrganization = makeBoundedKeyedSemaphore(1, maxQueuedTests)

  return Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
    const [target] = yield* rowsOf(TestTarget)(sql`
      SELECT org_id, url, secret FROM webhook_endpoints
      WHERE ${sql.and([sql`id = ${toStorable(id)}`, ...inScope(sql, scope)])}`)
    if (target === undefined) return yield* new EndpointNotFound({ id })
    const { orgId, secret, url } = target
    const eventId = ids.prefixed("evt")
    const attempt = Effect.gen(function* () {
      const createdAt = new Date(yield* Clock.currentTimeMillis)
      const type: WebhookEvent = "webhook.test"
      return yield* send({ createdAt, data: { endpoint_id: id }, eventId, secret, type, url }, answerBytes)
    })
    const [duration, { answer, failure = null, status = null }] = yield* withOrganization(orgId)(
      tests.withPermits(1)(Effect.timed(attempt))
    )
    const result: EndpointTest = {
      id,
      event: eventId,
      url,
      delivered: failure === null,
      status,
      duration_ms: Math.round(Duration.toMillis(duration)),
      failure,
      answer
    }
    return result
  })
})

interface EndpointQuery {
  readonly org?: OrgId | undefined
  readonly after?: string | undefined
  readonly limit: number
}

export interface DeliveryQuery {
  readonly org?: OrgId | undefined
  readonly state?: Delivery["state"] | undefined
  readonly endpoint?: string | undefined
  readonly event?: string | undefined
  readonly after?: string | undefined
  readonly limit?: number | undefined
}

/** SQL conditions. Partial indexes exist for pending and for failed deliveries, because those are few. */
const stateConditions = { pending: "next_at IS NOT NULL", failed: "state = 'failed'", delivered: "state = 'delivered'" }

class UrlRefused extends Data.TaggedError("UrlRefused")<{ readonly detail: string }> {
  override get message() {
    return `The URL is refused: ${this.detail}. It must be http or https, on a public host and the scheme's default port, or in FETCH_ALLOW.`
  }
}

const maxEndpoints = 20

class TooManyEndpoints extends Data.TaggedError("TooManyEndpoints")<{}> {
  override get message() {
    return `An organization may have ${maxEndpoints} webhook endpoints. Remove one first.`
  }
}

class EndpointNotFound extends Data.TaggedError("EndpointNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no webhook endpoint ${this.id}.`
  }
}

export class EventNotFound extends Data.TaggedError("EventNotFound")<{ readonly id: string }> {
  override get message() {
    return `There is no webhook ${this.id} with an enabled destination.`
  }
}

const pruneBatch = 5_000

/** Manages endpoints and deliveries. `WebhookDelivery` sends the events. */
export class Webhooks extends Context.Tag("gateway/Webhooks")<
  Webhooks,
  {
    /** Fails for an invalid URL, but does not resolve its host name. */
    readonly add: (endpoint: {
      readonly org: OrgId
      readonly url: string
    }) => Effect.Effect<
      { readonly endpoint: Endpoint; readonly secret: Redacted.Redacted },
      UrlRefused | TooManyEndpoints
    >
    readonly list: (org?: OrgId) => Effect.Effect<ReadonlyArray<Endpoint>>
    /** Newest first. */
    readonly page: (scope: OrganizationScope, query: EndpointQuery) => Effect.Effect<ReadonlyArray<Endpoint>>
    readonly find: (scope: OrganizationScope, id: string) => Effect.Effect<Endpoint, EndpointNotFound>
    /** Deletes the endpoint and its deliveries. */
    readonly remove: (scope: OrganizationScope, id: string) => Effect.Effect<Endpoint, EndpointNotFound>
    /** Enables an endpoint that was disabled because it returned 410. */
    readonly enable: (scope: OrganizationScope, id: string) => Effect.Effect<Endpoint, EndpointNotFound>
    /** Sends the event `webhook.test` and stores nothing. */
    readonly test: (scope: OrganizationScope, id: string) => Effect.Effect<EndpointTest, EndpointNotFound | GatewayBusy>
    /** Returns the signing secret for events that are sent to a request's `webhook_url`. `reissue` replaces it first. */
    readonly secret: (org: OrgId, options: { readonly reissue: boolean }) => Effect.Effect<Redacted.Redacted>
    /** Newest first. */
    readonly deliveries: (
      scope: OrganizationScope,
      query: DeliveryQuery
    ) => Effect.Effect<ReadonlyArray<ListedDelivery>>
    /** Sends an event to all its destinations again, with the same event id and a new series of tries. */
    readonly replay: (
      scope: OrganizationScope,
      eventId: string
    ) => Effect.Effect<ReadonlyArray<ListedDelivery>, EventNotFound>
    readonly prune: (olderThan: Duration.Duration) => Effect.Effect<number>
  }
>() {
  static readonly layer = Layer.effect(
    Webhooks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const fetcher = yield* Fetcher
      const ids = yield* Ids
      const test = yield* makeEndpointTests
      const endpoints = recordsOf(Endpoint)
      const deliveries = recordsOf(ListedDelivery)
      const columns = sql.literal(`webhook_endpoints.*, org_id AS org, (
        SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = webhook_endpoints.id AND next_at IS NOT NULL
      )::int AS pending`)
      const deliveryColumns = (scope: OrganizationScope) =>
        sql.literal(`event_id AS id, org_id AS org, endpoint_id AS endpoint, url, type, created_at AS at, state, tries, tried_at, status,
          failure, next_at, ${idFor(scope, "webhook_deliveries", "webhook_deliveries")} AS row`)

      const findOne = (id: string, statement: Parameters<typeof endpoints>[0]) =>
        Effect.flatMap(endpoints(statement), ([endpoint]) =>
          endpoint === undefined ? new EndpointNotFound({ id }) : Effect.succeed(endpoint)
        )

      const whereId = (scope: OrganizationScope, id: string) => sql.and([sql`id = ${id}`, ...inScope(sql, scope)])

      const add = Effect.fn("Webhooks.add")(function* ({ org, url }: { readonly org: OrgId; readonly url: string }) {
        yield* Effect.mapError(
          fetcher.check({ url, from: "customer" }),
          (failed) => new UrlRefused({ detail: explainFailure(url, failed).detail })
        )
        const secret = newSecret()
        yield* lockName(sql, `webhooks ${org}`)
        const [endpoint] = yield* endpoints(sql`
          INSERT INTO webhook_endpoints (id, org_id, url, secret)
          SELECT ${ids.prefixed("whe")}, ${org}, ${new URL(url).href}, ${secret}
          WHERE (SELECT count(*) FROM webhook_endpoints WHERE org_id = ${org}) < ${maxEndpoints} RETURNING ${columns}`)
        return { endpoint: endpoint ?? (yield* new TooManyEndpoints()), secret: Redacted.make(secret) }
      })

      const secretOf = Effect.fn("Webhooks.secret")(function* (org: OrgId, { reissue }: { readonly reissue: boolean }) {
        if (reissue) yield* sql`UPDATE webhook_secrets SET secret = ${newSecret()} WHERE org_id = ${org}`
        const [row] = yield* webhookSecretOf(sql, org)
        return Redacted.make(row?.secret ?? (yield* Effect.dieMessage("no secret was created")))
      }, Effect.orDie)

      const replay = Effect.fn("Webhooks.replay")(function* (scope: OrganizationScope, eventId: string) {
        const replayed = yield* deliveries(sql`
          UPDATE webhook_deliveries SET state = 'pending', tries = 0, lease = NULL, next_at = now()
          WHERE ${sql.and([sql`event_id = ${eventId}`, ...inScope(sql, scope)])} AND (endpoint_id IS NULL
            OR endpoint_id IN (SELECT id FROM webhook_endpoints WHERE disabled_at IS NULL))
          RETURNING ${deliveryColumns(scope)}`)
        return replayed.length === 0 ? yield* new EventNotFound({ id: eventId }) : replayed
      })

      return Webhooks.of({
        add,
        replay,
        secret: secretOf,
        test: Effect.fn("Webhooks.test")(test),
        list: Effect.fn("Webhooks.list")((org?: OrgId) =>
          endpoints(sql`
            SELECT ${columns} FROM webhook_endpoints WHERE ${org ?? null}::text IS NULL OR org_id = ${org ?? null}
            ORDER BY org_id, created_at, id`)
        ),
        page: Effect.fn("Webhooks.page")((scope: OrganizationScope, { after, limit, org }: EndpointQuery) =>
          endpoints(sql`
            SELECT ${columns} FROM webhook_endpoints ${listing(sql, {
              equal: { org_id: scope.narrow(org) },
              where: whenDefined(after, (id) => sql`id < ${id}`),
              by: ["id"],
              limit
            })}`)
        ),
        find: Effect.fn("Webhooks.find")((scope: OrganizationScope, id: string) =>
          findOne(id, sql`SELECT ${columns} FROM webhook_endpoints WHERE ${whereId(scope, id)}`)
        ),
        remove: Effect.fn("Webhooks.remove")((scope: OrganizationScope, id: string) =>
          findOne(
            id,
            sql`WITH dropped AS (
                DELETE FROM webhook_deliveries
                WHERE ${sql.and([sql`endpoint_id = ${id}`, ...inScope(sql, scope)])}
              )
              DELETE FROM webhook_endpoints WHERE ${whereId(scope, id)} RETURNING ${columns}`
          )
        ),
        enable: Effect.fn("Webhooks.enable")((scope: OrganizationScope, id: string) =>
          findOne(
            id,
            sql`UPDATE webhook_endpoints SET disabled_at = NULL WHERE ${whereId(scope, id)} RETURNING ${columns}`
          )
        ),
        deliveries: Effect.fn("Webhooks.deliveries")((scope: OrganizationScope, query: DeliveryQuery) => {
          const { after, endpoint, event, limit, org, state } = query
          return deliveries(sql`
            SELECT ${deliveryColumns(scope)} FROM webhook_deliveries ${listing(sql, {
              equal: { event_id: event, endpoint_id: endpoint, org_id: scope.narrow(org) },
              where: [
                ...whenDefined(state, (state) => sql.literal(stateConditions[state])),
                ...whenDefined(after, (row) => sql`id < ${numberOf(sql, scope, "webhook_deliveries", row)}`)
              ],
              by: ["webhook_deliveries.id"],
              limit
            })}`)
        }),
        prune: Effect.fn("Webhooks.prune")((olderThan: Duration.Duration) =>
          Effect.map(
            sql`DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY(
                SELECT id FROM webhook_deliveries
                WHERE created_at < now() - ${Math.floor(Duration.toSeconds(olderThan))} * interval '1 second'
                  AND next_at IS NULL
                LIMIT ${pruneBatch}
              )) RETURNING id`,
            (rows) => rows.length
          ).pipe(
            Effect.repeat({ while: (removed) => removed === pruneBatch }),
            Effect.zipLeft(sql`DELETE FROM webhook_slow_lanes WHERE tried_at < now() - interval '1 day'`),
            Effect.orDie
          )
        )
      })
    })
  )
}
