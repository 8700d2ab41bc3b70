import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { chargeOne, logRequest } from "../../harness/database/Rows.ts"
import { asOperator } from "../MediaServer.ts"

/** What members never see, at any depth of an answer. */
export const hiddenFields = [
  "cost_usd",
  "stated_cost_usd",
  "margin_usd",
  "cost_unknown",
  "provider",
  "route",
  "preferred_route",
  "provider_request_id",
  "attempts",
  "tried",
  "timeline",
  "preference",
  "handle",
  "notes",
  "note",
  "why",
  "actor",
  "address",
  "problem",
  "session",
  "payment_intent",
  "entry",
  "events"
]

const secretRoute = "canary-route@canary-provider"
const attempts = [
  { route: secretRoute, provider: "canary-provider", outcome: "retry", status: 503, ms: 3, detail: "canary-detail" }
]

const PublicIds = Schema.Struct({ entry: Schema.String, older: Schema.String, delivery: Schema.String })

/** An organization that has something of everything, under names and amounts that no other has. */
export const fullOrganization = Effect.gen(function* () {
  const { admin } = yield* asOperator("owner")
  const { key, org } = yield* openAccount({ nanoUsd: 90_000_000_000n })
  const sql = yield* SqlClient.SqlClient
  const { prefixed } = yield* Ids
  const mark = randomUUID().slice(0, 8)
  const owned = { org_id: org, key_id: key }
  const model = `model-${mark}`
  const member = `member-${mark}`
  const tag = `tag-${mark}`
  const user = `user-${mark}`
  const code = `code-${mark}`
  const { name } = read(yield* admin(`/organizations/${org}`))
  const { hint } = read(yield* admin(`/keys/${key}`, { method: "PATCH", body: { name: `key ${mark}` } }))
  const row = yield* logRequest({
    ...owned,
    model,
    tag,
    end_user: user,
    request_id: `req_${mark}`,
    route: secretRoute,
    preferred_route: secretRoute,
    provider: "canary-provider",
    provider_request_id: "canary-theirs",
    attempts,
    notes: ["canary-note"],
    address: "203.0.113.99",
    prompt_tokens: 10,
    completion_tokens: 4,
    cost: 1_111_111,
    charge: 7_000_000
  })
  yield* logRequest({ ...owned, model, at: new Date("2026-01-02") })
  yield* logRequest({ ...owned, status: 429, code })
  const { hold, requestId } = yield* chargeOne({ key, org }, 6_000_000n)
  read(
    yield* admin("/credits", { body: { organization: org, type: "adjustment", amount_usd: 1, note: "canary-note" } }),
    201
  )
  const { id: memberId } = read(
    yield* admin("/operators", { body: { name: member, role: "read", organization: org } }),
    201
  )
  const endpoint = read(
    yield* admin("/webhooks", { body: { organization: org, url: `https://${mark}.example/` } }),
    201
  )
  const payment = `pay_${randomUUID().replaceAll("-", "")}`
  yield* sql`
    INSERT INTO payments (id, org_id, amount, status, session, payment_intent, problem)
    VALUES (${payment}, ${org}, 5000000000, 'refused', ${`canary-session-${mark}`}, ${`canary-intent-${mark}`}, 'canary-problem')`
  const event = prefixed("evt")
  yield* sql`
    INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
    VALUES (${event}, ${org}, ${endpoint.id}, ${endpoint.url}, 'video.completed', '{}')`
  const videoHold = randomUUID()
  const video = prefixed("vid")
  yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${videoHold}, ${org}, ${key}, 500000000)`
  yield* sql`UPDATE organizations SET held = held + 500000000 WHERE id = ${org}`
  yield* sql`
    INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at, deadline)
    VALUES (${video}, ${org}, ${key}, ${videoHold}, ${`of-${mark}`}, ${model}, 5, 500000000, 'canary-wish',
      now(), now() + interval '1 hour')`
  const [entry, older] = read(yield* admin(`/ledger?organization=${org}`)).data
  const [numbers] = yield* Schema.decodeUnknown(Schema.Tuple(PublicIds))(
    yield* sql`
      SELECT (SELECT coalesce(hold_id, public_id) FROM ledger_entries WHERE id = ${entry.id}::bigint) AS entry,
        (SELECT coalesce(hold_id, public_id) FROM ledger_entries WHERE id = ${older.id}::bigint) AS older,
        public_id AS delivery
      FROM webhook_deliveries WHERE event_id = ${event}`
  )
  const ids = { org, key, row, hold, video, payment, endpoint: endpoint.id, event }
  const words = { name, mark, hint, model, tag, user, code, requestId, member, memberId }
  return {
    ...ids,
    ...words,
    org,
    /** As the organization sees them. */
    numbers,
    canaries: [
      ...Object.values(words),
      org,
      key,
      row,
      hold,
      video,
      payment,
      endpoint.id,
      event,
      ...Object.values(numbers)
    ]
  }
})

/** Every name of a field in a JSON document. */
export const fieldNames = (value: unknown): ReadonlyArray<string> => {
  if (Array.isArray(value)) return value.flatMap(fieldNames)
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [name, ...fieldNames(inner)])
}
