import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { Ids } from "../runtime/Ids.ts"
import { newSecret } from "./WebhookDelivery.ts"

interface EventDescription {
  /** Completes the table column "Sent when" in docs/webhooks.md. */
  readonly sentWhen: string
  /** Describes the event's `data`, in Markdown. */
  readonly data: string
}

/**
 * All webhook events, from which a table in docs/webhooks.md is generated. An event is written to the outbox in the
 * same transaction as the change that it reports. `writeNotice` writes it, or for events about money a function in
 * migrations/functions: spending_events.sql writes `credits.low` and `cap.reached`, and ledger_entries.sql writes
 * `credits.added` and `payment.reversed`. These files repeat the names of their events.
 */
export const webhookEvents = {
  "video.completed": {
    sentWhen: "a video is stored and charged",
    data: "the video, as in [`GET /videos/{id}`](api.md#get-videosid)"
  },
  "video.failed": {
    sentWhen: "a video fails",
    data: "the video, with its `error`"
  },
  "credits.low": {
    sentWhen: "the balance falls below the operator's threshold; sent again only after the balance has recovered",
    data: "`threshold_usd`, `available_usd`, `balance_usd`, `held_usd`"
  },
  "cap.reached": {
    sentWhen:
      "spending reaches 80 or 100 percent of a key's or the organization's cap; sent again in the next period, or after a refund",
    data: "`key_id`, `key_name` (`null` for the organization), `percent`, `cap_usd`, `cap_period`, `spent_usd`"
  },
  "credits.added": {
    sentWhen: "a top-up or payment is credited, a refund of a payment fails, or a dispute is won",
    data: "`entry_id`, `kind` (`top_up` or `payment_reversal`), `payment_id` or `null`, `amount_usd`, `balance_usd`"
  },
  "payment.reversed": {
    sentWhen: "a refund or dispute takes credits",
    data: "`entry_id`, `payment_id`, `reason` (`refund` or `dispute`), `amount_usd`, `balance_usd`, which may be negative"
  },
  "statement.ready": {
    sentWhen: "a UTC month that has entries is final: an hour after the month ends",
    data: "`month`, `opening_usd`, `closing_usd`, `total_charge_usd`"
  },
  "webhook.test": {
    sentWhen: "someone tests the endpoint",
    data: "`endpoint_id`"
  }
} as const satisfies Readonly<Record<string, EventDescription>>

export type WebhookEvent = keyof typeof webhookEvents

/** Returns an SQL string literal. */
export const eventLiteral = (event: WebhookEvent): string => `'${event}'`

interface NewEvent {
  readonly org: OrgId
  readonly type: WebhookEvent
  /** A request's `webhook_url`, which receives the event in addition to the organization's endpoints. */
  readonly url?: string | undefined
  readonly data: object
}

/** Writes an event to the outbox. Must run in the same transaction as the change that the event reports. */
export const writeNotice = (sql: SqlClient.SqlClient, { data, org, type, url }: NewEvent) =>
  Effect.flatMap(
    Ids,
    (ids) => sql`
      WITH endpoints AS (
        SELECT id, url FROM webhook_endpoints WHERE org_id = ${org} AND disabled_at IS NULL
      )
      INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
      SELECT ${ids.prefixed("evt")}, ${org}, destinations.id, destinations.url, ${type}, ${JSON.stringify(data)}::json
      FROM (
        SELECT id, url FROM endpoints
        UNION ALL
        SELECT NULL, ${url ?? null}
        WHERE ${url ?? null}::text IS NOT NULL AND NOT EXISTS (SELECT FROM endpoints WHERE url = ${url ?? null})
      ) AS destinations`
  )

/** Returns the signing secret for events that are sent to a request's `webhook_url`. The first call creates it. */
export const webhookSecretOf = (sql: SqlClient.SqlClient, org: OrgId) => sql<{ readonly secret: string }>`
  INSERT INTO webhook_secrets (org_id, secret) VALUES (${org}, ${newSecret()})
  ON CONFLICT (org_id) DO UPDATE SET secret = webhook_secrets.secret RETURNING secret`
