import type { SqlClient } from "@effect/sql"
import { refundedByHold } from "./RefundSql.ts"
import type { Invariant } from "./TotalsInvariants.ts"

/** `div` rounds up exactly: a quotient of numerics has only some sixteen digits. */
const byRates = `
  div(
    (log.prompt_tokens - coalesce(log.cached_tokens, 0) - coalesce(log.cache_write_tokens, 0))
      * (tier ->> 'prompt')::numeric
    + coalesce(log.cached_tokens, 0) * (tier ->> 'cached_prompt')::numeric
    + (coalesce(log.cache_write_tokens, 0) - coalesce(log.cache_write_hour_tokens, 0)) * (tier ->> 'cache_write')::numeric
    + coalesce(log.cache_write_hour_tokens, 0) * (tier ->> 'cache_write_1h')::numeric
    + coalesce(log.completion_tokens, 0) * (tier ->> 'completion')::numeric
    + coalesce(log.web_searches, 0) * (list.rates ->> 'web_search')::numeric * 1000
    + 999999, 1000000)`

/** An answer without output that a filter or the model refused is free, and nothing else is. */
const charged = `
  CASE WHEN 'charge_waived' = ANY (log.notes) AND coalesce(log.completion_tokens, 0) = 0 THEN 0 ELSE ${byRates} END`

/** Chats that were cut to their hold are excluded, and so are those that failed or were left before their charge. */
export const priceInvariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> => [
  {
    name: "a chat was charged its token counts by the rates that it came with",
    check: sql`
      SELECT log.id AS log_id, log.org_id, log.hold_id, log.charge, ${sql.literal(charged)} AS by_rates
      FROM request_log AS log
      JOIN price_lists AS list ON list.id = log.price_id
      CROSS JOIN LATERAL (
        SELECT tier FROM jsonb_array_elements(list.rates -> 'tiers') AS tier
        WHERE (tier ->> 'above')::bigint = 0 OR (tier ->> 'above')::bigint < log.prompt_tokens
        ORDER BY (tier ->> 'above')::bigint DESC LIMIT 1
      ) AS rated
      LEFT JOIN (${sql.literal(refundedByHold)}) AS refund ON refund.hold_id = log.hold_id
      WHERE log.surface = 'chat' AND log.hold_id IS NOT NULL AND log.prompt_tokens IS NOT NULL
        AND NOT log.notes && ARRAY['hold_exceeded', 'hold_lost', 'replayed']
        AND (log.charge > 0 OR log.status < 400 AND log.code IS DISTINCT FROM 'stream_error')
        AND log.charge + coalesce(refund.amount, 0) <> ${sql.literal(charged)}`
  }
]
