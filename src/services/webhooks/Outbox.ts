import type { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { OrgId } from "../../domain/Organization.ts"
import { Ids } from "../runtime/Ids.ts"
import { newSecret } from "./WebhookDelivery.ts"

interface Notice {
  readonly org: OrgId
  readonly type: "video.completed" | "video.failed"
  /** Given with the request; gets the notice beside the organization's endpoints. */
  readonly url: string | undefined
  readonly data: object
}

/** Belongs into the transaction of what the notice tells of. */
export const write = (sql: SqlClient.SqlClient, { data, org, type, url }: Notice) =>
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

/** Returns the secret that signs for URLs of requests; the first call makes it. */
export const secretOf = (sql: SqlClient.SqlClient, org: OrgId) => sql<{ readonly secret: string }>`
  INSERT INTO webhook_secrets (org_id, secret) VALUES (${org}, ${newSecret()})
  ON CONFLICT (org_id) DO UPDATE SET secret = webhook_secrets.secret RETURNING secret`
