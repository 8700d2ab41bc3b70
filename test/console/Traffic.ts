import { SqlClient } from "@effect/sql"
import { Effect, Schedule } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import type { OrgId } from "../../src/domain/Organization.ts"
import { Operators } from "../../src/services/admin/Operators.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { chat, post, talk } from "../harness/client/HttpCalls.ts"

const chatModel = "gemini-3.6-flash"
const imageModel = "gemini-3-pro-image"
const videoModel = "veo-3.1-fast-generate-001"

const image = post("/v1/images/generations")
const video = post("/v1/videos")

interface Customer {
  readonly secret: string
}

/** Sends requests of every surface. The sandbox answers some and fails others. */
export const makeTraffic = Effect.fnUntraced(function* (customer: Customer) {
  const say = (text: string, more = {}, headers = {}) =>
    chat(customer, { ...talk(chatModel, text), ...more }, { headers })
  yield* Effect.all(
    [
      say("Why is the sky blue?"),
      say("Count from one to five.", { stream: true }, { "user-agent": "acme-app/2.1 (linux)" }),
      say("[sandbox status=503 routes=1] Is anyone there?"),
      say("[sandbox status=429] And now?"),
      say("[sandbox cut=3] Say more.", { stream: true }),
      say("Hello.", { model: "unheard-of" }),
      image(customer, { model: imageModel, prompt: "A lighthouse at dusk" }),
      video(customer, { model: videoModel, prompt: "Waves", seconds: 4 }),
      video(customer, { model: videoModel, prompt: "[sandbox fail] Waves", seconds: 4 }),
      video(customer, { model: videoModel, prompt: "[sandbox delay=600000] Waves", seconds: 4 })
    ],
    { concurrency: 3 }
  )
})

/** Waits until one video is completed and one has failed. */
export const awaitVideos = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const finished = sql`SELECT DISTINCT status FROM videos WHERE status IN ('completed', 'failed')`
  yield* Effect.repeat(finished, { until: ({ length }) => length === 2, schedule: Schedule.spaced("200 millis") })
})

/** A script that runs unless the console escapes it. */
export const script = `<img src=x onerror="hacked=1"><script>hacked=1</script>`
const backwards = "\u202Egnp.exe\u2066"
const endless = "W".repeat(10_000)

/** Writes hostile texts into every field of customers, providers and operators, past all checks. */
export const spoil = Effect.fnUntraced(function* (organizations: ReadonlyArray<OrgId>) {
  const sql = yield* SqlClient.SqlClient
  const operators = yield* Operators
  const { topUp } = yield* LedgerAdmin
  yield* operators.create({ name: script, role: "read" })
  yield* Effect.forEach(organizations, (org, index) => {
    const text = [script, backwards, endless][index % 3] ?? ""
    const url = `https://hooks.example/${text}`
    const [endpoint, event] = [`whe_${index}`, `evt_${index}`]
    return Effect.all([
      sql`UPDATE organizations SET name = ${text} WHERE id = ${org}`,
      sql`UPDATE api_keys SET name = ${text} WHERE org_id = ${org}`,
      topUp({ org, amount: NanoUsd(1n), note: text, ref: text.slice(0, 1000) }),
      sql`
        UPDATE request_log SET user_agent = ${text}, attempts = CASE jsonb_array_length(attempts) WHEN 0 THEN attempts
          ELSE jsonb_set(attempts, '{0,detail}', to_jsonb(${text}::text)) END WHERE org_id = ${org}`,
      sql`UPDATE request_log SET model = ${text} WHERE org_id = ${org} AND route IS NULL AND hold_id IS NULL`,
      sql`UPDATE videos SET error_message = ${text} WHERE org_id = ${org} AND status = 'failed'`,
      sql`
        INSERT INTO webhook_endpoints (id, org_id, url, secret, failure, failed_at)
        VALUES (${endpoint}, ${org}, ${url}, 's', ${text}, now())`,
      sql`
        INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data, state, failure, next_at)
        VALUES (${event}, ${org}, ${endpoint}, ${url}, 'video.failed', '{}', 'failed', ${text}, NULL)`,
      sql`
        INSERT INTO route_controls (route, disabled_at, note)
        VALUES (${`${chatModel}@${text.slice(0, 1000)}`}, now(), ${text})`,
      sql`
        INSERT INTO audit (actor, via, action, target, org_id, before, after)
        VALUES (${text}, 'cli', 'organizations.rename', ${org}, ${org}, '{"name": "before"}', ${JSON.stringify({ name: text })})`
    ])
  })
})
