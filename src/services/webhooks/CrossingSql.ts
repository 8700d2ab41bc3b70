import { spentOfKey } from "../access/Cap.ts"

const usd = (amount: string) => `trim_scale(${amount} / 1e9)`

/** Rows of `moved` hold what an organization has after it was charged `charged`. */
export const lowCredits = `
  SELECT moved.id AS org_id, 'credits.low' AS type, json_build_object(
    'threshold_usd', ${usd("moved.notify_below")},
    'available_usd', ${usd("(moved.balance - moved.held)")},
    'balance_usd', ${usd("moved.balance")},
    'held_usd', ${usd("moved.held")}
  ) AS data
  FROM moved WHERE moved.balance < moved.notify_below AND moved.balance + moved.charged >= moved.notify_below`

/** The percentages of a cap that are told, and what they come to. */
const shares = (cap: string) => `(
    VALUES (80, ${cap} - ${cap} / 5), (100, ${cap})
  ) AS share (percent, amount)`

/** Rows of `spent` hold a key's spend of the day after the charges of `closed`; looks at keys with endpoints alone. */
export const reachedCaps = `
  SELECT charges.org_id, 'cap.reached' AS type, json_build_object(
    'key_id', charges.key_id, 'key_name', api_keys.name, 'percent', share.percent, 'cap_usd', ${usd("api_keys.cap")},
    'cap_period', api_keys.cap_period, 'spent_usd', ${usd("(before.spent + today.spent)")}
  ) AS data
  FROM (
    SELECT org_id, key_id, sum(charged) AS charged FROM closed
    WHERE org_id IN (SELECT org_id FROM endpoints) GROUP BY org_id, key_id
  ) AS charges
  JOIN spent AS today USING (key_id)
  JOIN api_keys ON api_keys.id = charges.key_id AND api_keys.cap IS NOT NULL
  CROSS JOIN LATERAL (SELECT ${spentOfKey("api_keys.cap_period", "day <> today.day")} AS spent) AS before
  CROSS JOIN LATERAL ${shares("api_keys.cap")}
  WHERE before.spent + today.spent >= share.amount AND before.spent + today.spent - charges.charged < share.amount`

/** As `reachedCaps`, of organizations; rows of `moved` hold what one has spent after it was charged `charged`. */
export const reachedOrganizationCaps = `
  SELECT moved.id AS org_id, 'cap.reached' AS type, json_build_object(
    'key_id', NULL, 'key_name', NULL, 'percent', share.percent, 'cap_usd', ${usd("moved.cap")},
    'cap_period', moved.cap_period, 'spent_usd', ${usd("moved.cap_spent")}
  ) AS data
  FROM moved CROSS JOIN LATERAL ${shares("moved.cap")}
  WHERE moved.cap_spent >= share.amount AND moved.cap_spent - moved.charged < share.amount`

/** Expressions that write `notices` for the endpoints of organizations; they cost next to nothing where there are none. */
export const notify = (organizations: string, notices: string) => `
  endpoints AS (
    SELECT id, org_id, url FROM webhook_endpoints WHERE disabled_at IS NULL AND org_id IN (${organizations})
  ), notices AS (
    SELECT 'evt_' || replace(gen_random_uuid()::text, '-', '') AS event_id, crossing.* FROM (${notices}) AS crossing
  ), notified AS (
    INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data)
    SELECT notices.event_id, notices.org_id, endpoints.id, endpoints.url, notices.type, notices.data
    FROM notices JOIN endpoints ON endpoints.org_id = notices.org_id
  )`
