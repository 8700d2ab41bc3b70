import { SqlClient } from "@effect/sql"
import { Clock, Duration, Effect, Schema } from "effect"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { Ids } from "../runtime/Ids.ts"
import { makeBoundedKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { inScope, rowsOf, toStorable } from "../sql/Statement.ts"
import type { EndpointTest } from "./Endpoint.ts"
import { makeSend } from "./Sending.ts"

/** Each organization runs at most one test. More organizations than this wait while hosts don't answer. */
const maxAtOnce = 32
/** A test that waits keeps a request of the admin API. */
const maxWaiting = 4
const answerBytes = 500

const Destination = Schema.Struct({ orgId: Schema.String, url: Schema.String, secret: Schema.String })

/**
 * Sends an event to an endpoint now, whether it is enabled or not, and keeps nothing of it. Those of an organization wait for
 * each other, and fail where too many do.
 */
export const makeEndpointTests = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const send = yield* makeSend
  const all = yield* Effect.makeSemaphore(maxAtOnce)
  const inTurn = makeBoundedKeyedSemaphore(1, maxWaiting)

  return Effect.fnUntraced(function* (scope: OrganizationScope, id: string) {
    const [found] = yield* rowsOf(Destination)(sql`
      SELECT org_id, url, secret FROM webhook_endpoints
      WHERE ${sql.and([sql`id = ${toStorable(id)}`, ...inScope(sql, scope)])}`)
    if (found === undefined) return undefined
    const { orgId, secret, url } = found
    const eventId = ids.prefixed("evt")
    const attempt = Effect.gen(function* () {
      const createdAt = new Date(yield* Clock.currentTimeMillis)
      return yield* send(
        { createdAt, data: { endpoint_id: id }, eventId, secret, type: "webhook.test", url },
        answerBytes
      )
    })
    const [took, { answer, failure = null, status = null }] = yield* inTurn(orgId)(
      all.withPermits(1)(Effect.timed(attempt))
    )
    const result: EndpointTest = {
      id,
      event: eventId,
      url,
      delivered: failure === null,
      status,
      duration_ms: Math.round(Duration.toMillis(took)),
      failure,
      answer
    }
    return result
  })
})
