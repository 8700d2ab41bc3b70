import { Effect, Schema } from "effect"
import * as Pg from "pg"

const Nano = Schema.BigInt

const Hold = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  keyId: Schema.String,
  amount: Nano,
  state: Schema.Literal("open", "settled", "released"),
  ofJob: Schema.Boolean,
  /** The charges entered for it. */
  charges: Schema.Array(Nano),
  /** What was given back, and is not part of the charges. */
  refunded: Nano
})

const Entry = Schema.Struct({ orgId: Schema.String, kind: Schema.String, amount: Nano })

const Organization = Schema.Struct({ id: Schema.String, balance: Nano, held: Nano })

const Logged = Schema.Struct({
  requestId: Schema.String,
  orgId: Schema.String,
  status: Schema.Number,
  code: Schema.NullOr(Schema.String),
  holdId: Schema.NullOr(Schema.String),
  charge: Nano
})

const Video = Schema.Struct({
  id: Schema.String,
  orgId: Schema.String,
  requestId: Schema.String,
  prompt: Schema.String,
  status: Schema.String,
  step: Schema.String,
  holdId: Schema.String,
  accepted: Schema.Boolean
})

const Kept = Schema.Struct({
  orgId: Schema.String,
  key: Schema.NullOr(Schema.String),
  state: Schema.String,
  holdId: Schema.NullOr(Schema.String)
})

/** What a key was given above its limits. */
const Excess = Schema.Struct({ keyId: Schema.String, what: Schema.String })

const Snapshot = Schema.Struct({
  holds: Schema.Array(Hold),
  entries: Schema.Array(Entry),
  organizations: Schema.Array(Organization),
  log: Schema.Array(Logged),
  videos: Schema.Array(Video),
  keys: Schema.Array(Kept),
  excesses: Schema.Array(Excess)
})

/** What the database says at one moment, every row of it. Amounts are nano-USD. */
export type Rows = typeof Snapshot.Type
export type HoldRow = typeof Hold.Type
export type LogRow = typeof Logged.Type

const queries: Readonly<Record<keyof Rows, string>> = {
  holds: `SELECT h.id, h.org_id AS "orgId", h.key_id AS "keyId", h.amount::text, h.state, h.is_job AS "ofJob",
      coalesce(array_agg((-e.amount)::text) FILTER (WHERE e.id IS NOT NULL), '{}') AS charges,
      coalesce((SELECT sum(amount) FROM ledger_entries WHERE ref LIKE 'refund:' || h.id || '%'), 0)::text AS refunded
    FROM all_holds h LEFT JOIN ledger_entries e ON e.hold_id = h.id GROUP BY 1, 2, 3, 4, 5, 6`,
  entries: `SELECT org_id AS "orgId", kind, amount::text FROM ledger_entries`,
  organizations: `SELECT id, balance::text, held::text FROM organizations`,
  log: `SELECT request_id AS "requestId", org_id AS "orgId", status, code, hold_id AS "holdId", charge::text FROM request_log`,
  videos: `SELECT id, org_id AS "orgId", request_id AS "requestId", prompt, status, step, hold_id AS "holdId",
      accepted_at IS NOT NULL AS accepted FROM videos`,
  keys: `SELECT org_id AS "orgId", key, state, hold_id AS "holdId" FROM idempotency_keys`,
  excesses: `SELECT key_id AS "keyId", what FROM excesses`
}

const names = ["holds", "entries", "organizations", "log", "videos", "keys", "excesses"] as const

const withClient = <A>(url: string, use: (client: Pg.Client) => Promise<A>) =>
  Effect.promise(async () => {
    const client = new Pg.Client(url)
    client.on("error", () => {})
    await client.connect()
    try {
      return await use(client)
    } finally {
      await client.end()
    }
  })

/** Reads everything in one transaction. */
export const read = (url: string): Effect.Effect<Rows> =>
  withClient(url, async (client) => {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ")
    const rows: Record<string, unknown> = {}
    for (const name of names) rows[name] = (await client.query(queries[name])).rows
    return rows
  }).pipe(Effect.flatMap((rows) => Effect.orDie(Schema.decodeUnknown(Snapshot)(rows))))

/** Whether no hold is open and every job is over: what is left to be mended takes its time, and reading all rows too. */
export const isSettled = (url: string): Effect.Effect<boolean> =>
  withClient(url, async (client) => {
    const { rows } = await client.query(`SELECT 1 FROM all_holds WHERE state = 'open'
      UNION ALL SELECT 1 FROM videos WHERE step <> 'over' LIMIT 1`)
    return rows.length === 0
  })

/** Lets the time pass for dead gateways after which the living release their holds; these renew every 5 s. */
export const ageDeadInstances = (url: string) =>
  withClient(url, (client) =>
    client.query(`UPDATE instances SET beat_at = beat_at - interval '1 minute'
      WHERE stopped_at IS NULL AND swept_at IS NULL AND beat_at < now() - interval '8 seconds'`)
  )
