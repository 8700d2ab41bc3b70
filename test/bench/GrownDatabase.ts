import { hash } from "node:crypto"
import { Duration, Effect, Schema } from "effect"
import type * as Pg from "pg"
import { KeyId, keyPrefix } from "../../src/domain/ApiKey.ts"
import { OrgId } from "../../src/domain/Organization.ts"
import { totalColumns as sums } from "../../src/services/requests/RequestColumns.ts"
import { attribution, tagTotals } from "./GrownTags.ts"

export interface Size {
  /** Of holds and of the request log, each; about as many ledger entries. */
  readonly rows: number
  readonly videos: number
}

export const organizations = 200
export const keys = 400
export const days = 90

/** What few requests have: the worst case for a listing in the order of time. */
export const rareModel = "video-rare"
export const rareStatus = 418

const md5 = (text: string) => hash("md5", text)
export const organizationId = (number: number) => OrgId.make(`org_${md5(`org${number}`)}`)
/** Whose key that is. */
export const organizationOf = (key: number) => organizationId(1 + (key % organizations))
export const keyId = (number: number) => KeyId.make(`key_${md5(`key${number}`)}`)
export const secretOf = (number: number) => `${keyPrefix}${number}`
/** The one instance that lives. */
export const instanceId = md5("instance0").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
/** The key and the organization that most rows are of. */
export const busiestKey = keyId(1)
export const busiest = organizationOf(1)
/** One that made a fifth of all, and stopped a month ago. */
export const former = organizationOf(2)
/** One with more keys than others. */
export const manyKeyed = organizationOf(3)
export const endpointOf = (org: OrgId) => `whk_${md5(org)}`
/** One of which there is nothing yet. */
export const newcomer = OrgId.make("org_newcomer")

const query = (client: Pg.Client, text: string) => Effect.promise(() => client.query(text))

const tables = ["holds", "ledger_entries", "request_log", "videos", "idempotency_keys", "webhook_deliveries", "audit"]

const Index = Schema.Struct({ name: Schema.String, definition: Schema.String })
const decodeIndexes = Schema.decodeUnknownSync(Schema.Array(Index))

/** Takes away the indexes that stand for no constraint; making them afterwards costs a fraction. */
const dropIndexes = Effect.fnUntraced(function* (client: Pg.Client) {
  const { rows } = yield* query(
    client,
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid
     WHERE i.indrelid = ANY ('{${tables.join(",")}}'::regclass[]) AND c.oid IS NULL ORDER BY i.indrelid, name`
  )
  const indexes = decodeIndexes(rows)
  for (const { name } of indexes) yield* query(client, `DROP INDEX ${name}`)
  return indexes
})

/** A UUID of version 7 of that moment; the same arguments give the same one. */
const uuid = (at: string, seed: string) => `(
  lpad(to_hex((extract(epoch FROM ${at}) * 1000)::bigint), 12, '0') || '7' || left(md5(${seed}), 3) || '8'
  || right(md5(${seed}), 15))::uuid`

const accounts = `
  INSERT INTO organizations (id, name, created_at)
  SELECT 'org_' || md5('org' || i), 'Customer ' || i, now() - interval '${days + 1} days' + i * interval '1 second'
  FROM generate_series(1, ${organizations}) AS i;
  INSERT INTO api_keys (id, org_id, name, hash, hint, cap, cap_period, created_at)
  SELECT 'key_' || md5('key' || i), 'org_' || md5('org' || 1 + i % ${organizations}), 'key ' || i, sha256(('${keyPrefix}' || i)::bytea),
    left(md5('hint' || i), 8), CASE WHEN i % 2 = 0 THEN 1000000000000000 END,
    CASE WHEN i % 2 = 0 THEN CASE i % 4 WHEN 0 THEN 'total' ELSE 'month' END END, now() - interval '${days + 1} days'
  FROM generate_series(1, ${keys}) AS i;
  INSERT INTO key_uses SELECT id, now() FROM api_keys;
  INSERT INTO rate_windows SELECT id, now(), 1 FROM api_keys;
  INSERT INTO instances (id, started_at, beat_at, stopped_at)
  SELECT md5('instance' || i)::uuid, now() - interval '${days} days', 'infinity', CASE WHEN i > 0 THEN now() END
  FROM generate_series(0, 30) AS i;
  INSERT INTO route_health
  SELECT md5('instance0')::uuid, 'route-' || i, 'provider', 'chat-' || i, 'closed', NULL, NULL, NULL, 100, 1000, 3, now()
  FROM generate_series(1, 60) AS i;
  INSERT INTO ledger_entries (org_id, at, kind, amount, ref)
  SELECT id, created_at, 'top_up', 1000000000000000000 / ${organizations}, 'invoice-' || id FROM organizations;`

/** A key's number: few make most requests. Those of the former customer are drawn no more once it has gone. */
const drawnKey = (isLate: string) => `(
  SELECT CASE
      WHEN ${isLate} THEN CASE key % ${organizations} WHEN 2 THEN 1 ELSE key END
      WHEN other < 0.2 THEN 2
      ELSE key
    END
  FROM (SELECT 1 + floor(${keys} * power(random(), 2))::int AS key, random() AS other WHERE i > 0) AS draw)`

/** The newest are open; a hold without an instance is a video's. Few keys make most of them. */
const holds = ({ rows, videos }: Size) => `
  CREATE TEMP TABLE drawn_holds (LIKE holds);
  INSERT INTO drawn_holds (id, org_id, key_id, amount, state, charged, instance_id, created_at, closed_at)
  SELECT ${uuid("at", "i::text")}, 'org_' || md5('org' || 1 + key % ${organizations}), 'key_' || md5('key' || key), amount, state,
    CASE WHEN state = 'settled' THEN CASE WHEN is_video THEN amount ELSE amount * (i % 100) / 100 END END,
    CASE WHEN NOT is_video THEN md5('instance' || CASE state WHEN 'open' THEN 0 ELSE i % 30 END)::uuid END,
    at, CASE WHEN state <> 'open' THEN at + interval '2 seconds' END
  FROM (
    SELECT i, now() - interval '1 minute' - (${rows} - i) * interval '${days} days' / ${rows} AS at,
      ${drawnKey("i > " + (rows * (days - 30)) / days)} AS key, 1000 + floor(1000000 * random())::bigint AS amount,
      i % ${Math.round(rows / videos)} = 0 AS is_video,
      CASE WHEN i > ${rows - Math.min(400, rows / 500)} THEN 'open' WHEN random() < 0.03 THEN 'released' ELSE 'settled' END AS state
    FROM generate_series(1, ${rows}) AS i
    OFFSET 0
  ) AS drawn`

const isRefunded = "instance_id IS NOT NULL AND charged > 0 AND right(id::text, 2) = '0f'"

/** The older half is from before there were open holds by themselves. */
const leavesNoRow = `instance_id IS NOT NULL AND state = 'settled' AND created_at > now() - interval '${days / 2} days'`
const isInProcess = "instance_id IS NOT NULL AND state = 'open'"

const entries = `
  INSERT INTO holds SELECT * FROM drawn_holds WHERE NOT (${leavesNoRow} OR ${isInProcess});
  INSERT INTO open_holds SELECT id, org_id, key_id, amount, instance_id, created_at FROM drawn_holds WHERE ${isInProcess};
  INSERT INTO ledger_entries (org_id, at, kind, amount, hold_id, key_id, held, held_at)
  SELECT org_id, closed_at, 'charge', -charged, id, key_id, CASE WHEN ${leavesNoRow} THEN amount END,
    CASE WHEN ${leavesNoRow} THEN created_at END
  FROM drawn_holds WHERE state = 'settled';
  INSERT INTO ledger_entries (org_id, at, kind, amount, ref, note)
  SELECT org_id, closed_at, 'adjustment', charged, 'refund:' || id, 'charged for an answer that failed'
  FROM drawn_holds WHERE ${isRefunded};
  INSERT INTO key_spend
  SELECT key_id, (closed_at AT TIME ZONE 'UTC')::date, sum(CASE WHEN ${isRefunded} THEN 0 ELSE charged END)
  FROM drawn_holds WHERE state = 'settled' GROUP BY 1, 2;`

const balances = `
  UPDATE organizations SET balance = sums.total
  FROM (SELECT org_id, sum(amount) AS total FROM ledger_entries GROUP BY org_id) AS sums WHERE sums.org_id = organizations.id;
  UPDATE organizations SET held = sums.total
  FROM (SELECT org_id, sum(amount) AS total FROM all_holds WHERE state = 'open' GROUP BY org_id) AS sums
  WHERE sums.org_id = organizations.id;`

/** In the order of time, as they are written; some were refused before they held anything. A key uses few models. */
const log = ({ rows }: Size) => `
  INSERT INTO request_log (
    id, request_id, at, surface, status, code, org_id, key_id, model, route, provider, attempts, prompt_tokens,
    completion_tokens, cached_tokens, reasoning_tokens, hold_id, charge, cost, first_byte_ms, total_ms, end_user, tag)
  SELECT (left(id::text, 24) || right(md5(id::text), 12))::uuid,
    'req_' || replace(left(id::text, 24), '-', '') || right(md5(id::text), 12), created_at AS at, surface,
    CASE WHEN NOT is_failed THEN 200 WHEN right(id::text, 3) = 'ace' THEN ${rareStatus}
      WHEN pick < 0.6 THEN 502 WHEN pick < 0.8 THEN 503 ELSE 499 END,
    CASE WHEN is_failed THEN CASE WHEN pick < 0.8 THEN 'upstream_error' ELSE 'client_closed' END END, org_id, key_id, model,
    model || '@' || provider, provider,
    jsonb_build_array(jsonb_build_object('route', model || '@' || provider,
      'provider', provider, 'outcome', CASE WHEN is_failed THEN 'retry' ELSE 'ok' END, 'status', 200,
      'ms', 700) || CASE WHEN is_failed AND pick < 0.3 THEN '{"cost_nano": "1000"}' ELSE '{}' END::jsonb),
    (2000 * pick)::int, (500 * pick)::int, 0, 0, id,
    CASE WHEN is_failed THEN 0 ELSE coalesce(charged, 0) END,
    CASE WHEN NOT is_failed THEN charged / 2 END, (200 + 2000 * pick)::int, 1000 + (4000 * pick)::int, ${attribution}
  FROM (
    SELECT *, CASE
        WHEN right(id::text, 5) = '0beef' THEN '${rareModel}'
        ELSE surface || '-' || 1 + (abs(hashtext(key_id)) + floor(3 * power(pick, 3)))::int
          % CASE surface WHEN 'chat' THEN 33 WHEN 'image' THEN 6 ELSE 5 END
      END AS model,
      'provider-' || 1 + CASE WHEN other < 0.05 AND abs(hashtext(key_id)) % 3 = 0 THEN 5 ELSE abs(hashtext(key_id)) % 5 END AS provider
    FROM (
      SELECT *, CASE WHEN instance_id IS NULL THEN 'video' WHEN right(id::text, 1) = '7' THEN 'image' ELSE 'chat' END AS surface,
        random() AS pick, random() AS other, state = 'released' OR ${isRefunded} AS is_failed
      FROM drawn_holds WHERE state <> 'open' OR instance_id IS NULL
      OFFSET 0
    ) AS drawn
  ) AS named
  UNION ALL
  SELECT ${uuid("at", "'refused' || i")}, 'req_' || md5('refused' || i), at, 'chat',
    (ARRAY[404, 429, 402, 400])[1 + i % 4], 'refused', 'org_' || md5('org' || 1 + key % ${organizations}),
    'key_' || md5('key' || key), CASE i % 4 WHEN 0 THEN 'guess-' || i WHEN 2 THEN 'chat-1' END, NULL, NULL, '[]', NULL, NULL,
    NULL, NULL, NULL, 0, NULL, NULL, 2, NULL, NULL
  FROM (
    SELECT i, ${drawnKey("true")} AS key, now() - random() * interval '${days} days' AS at
    FROM generate_series(1, ${Math.round(rows / 50)}) AS i OFFSET 0
  ) AS drawn
  ORDER BY at`

const added = sums.map((name) => `sum(${name}) AS ${name}`).join(", ")
const series = "org_id, key_id, model, route, provider, surface, status, is_sold"

/** What the triggers would have added. */
const totals = `
  CREATE TEMP TABLE parts AS
  SELECT hour, org_id, key_id, CASE WHEN is_sold OR model = '' THEN model ELSE 'unknown' END AS model, route, provider,
    surface, status, is_sold, tag, ${added}
  FROM (SELECT p.* FROM request_log AS r, usage_parts(1, ROW(r.*)::request_log) AS p) AS parts
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;
  INSERT INTO usage_series (${series}) SELECT DISTINCT ${series} FROM parts;
  ANALYZE usage_series;
  INSERT INTO usage_totals (span, series_id, starts_at, ${sums.join(", ")})
  SELECT 'hour', id, hour, ${added} FROM parts JOIN usage_series USING (${series}) GROUP BY 1, 2, 3 ORDER BY hour;
  INSERT INTO usage_totals (span, series_id, starts_at, ${sums.join(", ")})
  SELECT 'day', series_id, date_trunc('day', starts_at, 'UTC'), ${added} FROM usage_hours GROUP BY 1, 2, 3 ORDER BY 3;
  ${tagTotals(series)}
  UPDATE usage_bounds SET logged_from = '-infinity';
  DROP TABLE parts`

const frozenRoute = JSON.stringify({
  id: "video-1@provider-1",
  provider: { name: "provider-1", adapter: "fal-queue", baseUrl: null },
  model: "vendor/video-1",
  imageModel: null,
  referenceImage: "none",
  seconds: [5],
  secondsAs: "number",
  options: {},
  cost: null
})

const renders = `
  INSERT INTO videos (
    id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at, deadline, accepted_at, status,
    completed_at, media, error_code, error_message, step, route, handle, attempted_routes, attempts, polls, next_at)
  SELECT 'vid_' || md5(id::text), org_id, key_id, id, 'req_' || md5(id::text),
    CASE WHEN right(id::text, 5) = '0beef' THEN '${rareModel}' ELSE 'video-' || 1 + floor(5 * random()) END, 5, amount,
    CASE state WHEN 'open' THEN 'a long walk' ELSE '' END, created_at, created_at + interval '30 minutes', created_at,
    CASE state WHEN 'open' THEN 'in_progress' WHEN 'settled' THEN 'completed' ELSE 'failed' END, closed_at,
    CASE state WHEN 'settled' THEN 'public/' || left(md5(id::text), 32) || '.mp4' END,
    CASE state WHEN 'released' THEN 'upstream_error' END, CASE state WHEN 'released' THEN 'The upstream provider returned an error.' END,
    CASE state WHEN 'open' THEN 'rendering' ELSE 'over' END, '${frozenRoute}', 'handle-' || id, '{video-1@provider-1}',
    '[{"route": "video-1@provider-1", "provider": "provider-1", "outcome": "ok", "ms": 700}]', 12,
    CASE state WHEN 'open' THEN now() END
  FROM drawn_holds WHERE instance_id IS NULL`

const replays = `
  INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id, created_at)
  SELECT (left(id::text, 24) || right(md5('claim' || id), 12))::uuid, org_id, 'images', 'retry-' || id, md5(id::text), 'done',
    instance_id, '{"data": []}', id, closed_at
  FROM drawn_holds WHERE created_at > now() - interval '26 hours' AND state = 'settled' AND instance_id IS NOT NULL AND charged % 10 = 0`

const spareKeys = `
  INSERT INTO api_keys (id, org_id, hash, created_at)
  SELECT 'key_' || md5('spare' || i), '${manyKeyed}', sha256(('spare' || i)::bytea), now() FROM generate_series(1, 2000) AS i`

/** An organization's endpoint gets an event for each tenth of its requests; few fail. */
const deliveries = `
  INSERT INTO webhook_endpoints (id, org_id, url, secret)
  SELECT 'whk_' || md5(id), id, 'https://customer.example/hook', 'secret' FROM organizations;
  INSERT INTO webhook_deliveries (event_id, org_id, endpoint_id, url, type, data, created_at, state, tries, next_at)
  SELECT 'evt_' || md5(id::text), org_id, 'whk_' || md5(org_id), 'https://customer.example/hook', 'video.completed', '{}',
    created_at, CASE WHEN right(id::text, 3) = '0ff' THEN 'failed' ELSE 'delivered' END, 1, NULL
  FROM drawn_holds WHERE id::text ~ '[0-4].$' ORDER BY created_at`

const changes = `
  INSERT INTO audit (at, actor, via, action, target, org_id)
  SELECT created_at, 'operator ' || (abs(hashtext(org_id)) % 3)::text, 'cli', 'credits.add', org_id, org_id
  FROM drawn_holds WHERE id::text ~ '[5-9].$' ORDER BY created_at`

/** Organizations with credits, and keys, that nobody has used yet. */
export const fillAccounts = (client: Pg.Client) =>
  Effect.forEach([accounts, balances, "VACUUM ANALYZE"], (text) => query(client, text))

/**
 * Fills a migrated, empty database with what the gateway would have left there after 90 days, so that every invariant
 * of the ledger holds. Says how long each part took, the making of each index included.
 */
export const fill = Effect.fnUntraced(function* (
  client: Pg.Client,
  size: Size,
  report: (line: string) => Effect.Effect<void>
) {
  const timed = Effect.fnUntraced(function* (what: string, text: string) {
    const [duration] = yield* Effect.timed(query(client, text))
    yield* report(`${what}: ${(Duration.toMillis(duration) / 1000).toFixed(1)} s`)
  })
  // Neither triggers nor references are checked row by row: what is written is right, as `ledger verify` proves.
  yield* query(
    client,
    `SET session_replication_role = replica; SET maintenance_work_mem = '1GB'; SET work_mem = '256MB';
     SET synchronize_seqscans = off; SET TIME ZONE 'UTC'; SELECT setseed(0.5)`
  )
  const indexes = yield* dropIndexes(client)
  yield* timed("accounts", accounts)
  yield* timed("holds", holds(size))
  yield* timed("ledger_entries", entries)
  yield* timed("balances", balances)
  yield* timed("request_log", log(size))
  yield* timed("totals of usage", totals)
  yield* timed("videos", renders)
  yield* timed("idempotency_keys", replays)
  yield* timed("api_keys", spareKeys)
  yield* timed("webhook_deliveries", deliveries)
  yield* timed("audit", changes)
  yield* query(client, "DROP TABLE drawn_holds")
  for (const { definition, name } of indexes) yield* timed(`index ${name}`, definition)
  yield* timed("VACUUM ANALYZE", "VACUUM ANALYZE")
})
