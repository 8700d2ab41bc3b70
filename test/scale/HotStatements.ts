/** Of how many organizations one run of a statement may touch rows; `none` where the rows are nobody's. */
export type Extent = "none" | "one" | "several"

export interface HotStatement {
  readonly name: string
  /** Each matches a text, in which white space is single blanks. */
  readonly texts: ReadonlyArray<RegExp>
  readonly extent: Extent
  readonly why: string
  /** What it needs where tables are distributed by organization. */
  readonly needs: string
  /** Runs too seldom to be seen each time, or to be seen reach so far. */
  readonly isRare?: true
}

/** What chats, images and videos ask PostgreSQL for, and what runs beside them. */
export const hotStatements: ReadonlyArray<HotStatement> = [
  {
    name: "revision of keys and block list",
    texts: [/^SELECT revision FROM access_revision/, /FROM blocklist$/],
    extent: "none",
    why: "one revision for all keys",
    needs: "reference tables"
  },
  {
    name: "look-up of keys",
    texts: [/FROM api_keys JOIN organizations .* WHERE hash = ANY/],
    extent: "several",
    why: "finds together the keys that are asked for at once, by their hashes",
    needs: "a reference table from hash to organization, read first"
  },
  {
    name: "admission",
    texts: [/INSERT INTO open_holds \(id, org_id, key_id, amount, instance_id\) SELECT/],
    extent: "several",
    why: "a batch of holds, with the rate windows and balances of all in it",
    needs: "a batch for each shard"
  },
  {
    name: "settlement",
    texts: [/'lock_timeout', '250'.* DELETE FROM open_holds AS hold USING input/],
    extent: "several",
    why: "a batch of charges, with balances, entries, spending of keys and rows of the log",
    needs: "a batch for each shard"
  },
  {
    name: "release",
    texts: [/id IN \(SELECT org_id FROM all_holds WHERE id = ANY/],
    extent: "several",
    why: "a batch of holds, found by their ids alone",
    needs: "a batch for each shard, with the organizations among its values"
  },
  {
    name: "rate units without a hold",
    texts: [/^INSERT INTO rate_windows/],
    extent: "several",
    why: "a batch of keys",
    needs: "a batch for each shard; the organization in rate_windows"
  },
  {
    name: "tokens given back, of keys with such a limit",
    texts: [/UPDATE token_windows AS w SET used = greatest/],
    extent: "several",
    why: "a batch of keys",
    needs: "a batch for each shard; the organization in token_windows",
    isRare: true
  },
  {
    name: "rows of the log without a charge, or completed",
    texts: [/^INSERT INTO request_log/, /^UPDATE request_log/],
    extent: "several",
    why: "all that are waiting, of whomever",
    needs: "a batch for each shard"
  },
  {
    name: "idempotency of an image or a video",
    texts: [
      /^INSERT INTO idempotency_keys/,
      /^UPDATE idempotency_keys SET state =/,
      /DELETE FROM idempotency_keys WHERE claim = \$1/
    ],
    extent: "one",
    why: "a claim of one organization",
    needs: "the organization beside the claim"
  },
  {
    name: "settlement of an image",
    texts: [/'lock_timeout', '1000'.* DELETE FROM open_holds AS hold USING input/],
    extent: "one",
    why: "alone, in the transaction of its idempotency key",
    needs: "the organization beside the hold"
  },
  {
    name: "hold and settlement of a video",
    texts: [/known AS \( SELECT id FROM holds/, /UPDATE holds AS hold SET state = 'settled'/],
    extent: "one",
    why: "alone, in the transaction of its video",
    needs: "the organization beside the hold"
  },
  {
    name: "steps of a video",
    texts: [/^INSERT INTO videos/, /^SELECT .* FROM videos WHERE id = \$1/, /^UPDATE videos SET (?!lease_until)/],
    extent: "one",
    why: "one video, by its id",
    needs: "the organization beside the id"
  },
  {
    name: "next videos to work on",
    texts: [/^WITH due AS \( SELECT id, accepted_at/, /^SELECT .* FROM videos WHERE next_at IS NOT NULL/],
    extent: "several",
    why: "takes what is due, of whomever",
    needs: "a worker for each shard"
  },
  {
    name: "leases of videos, last uses of keys",
    texts: [/^WITH mine AS .* UPDATE videos SET lease_until/, /^INSERT INTO key_uses/],
    extent: "several",
    why: "all that this process works for",
    needs: "a statement for each shard",
    isRare: true
  },
  {
    name: "addition to the totals of usage",
    texts: [/^SELECT count_uncounted/],
    extent: "several",
    why: "adds up all that was logged since the last second, under one lock",
    needs: "a queue, a lock and totals for each shard"
  },
  {
    name: "addition to the charges of months",
    texts: [/^SELECT add_charges/],
    extent: "several",
    why: "adds up all that was charged in ten minutes, under one lock",
    needs: "a run on each shard",
    isRare: true
  },
  {
    name: "months whose statements are told",
    texts: [
      /^SELECT to_char\(month, 'YYYY-MM'\) AS month FROM statement_notices/,
      /^WITH taken AS \( UPDATE statement_notices/
    ],
    extent: "several",
    why: "one month for all, with an event for each endpoint",
    needs: "a run on each shard",
    isRare: true
  },
  {
    name: "holds of dead processes, released holds",
    texts: [/^WITH dead AS/, /^WITH released AS \( DELETE FROM open_holds/],
    extent: "several",
    why: "a process served all organizations",
    needs: "a run on each shard"
  },
  {
    name: "due webhooks, organizations that have any",
    texts: [
      /^WITH due AS \( SELECT \* FROM \( SELECT id, org_id, lane/,
      /^SELECT DISTINCT org_id FROM webhook_endpoints/
    ],
    extent: "several",
    why: "takes what is due, of whomever",
    needs: "a worker for each shard"
  },
  {
    name: "removal of what is old",
    texts: [
      /^DELETE FROM (?:request_log|usage_tags|videos|webhook_deliveries|webhook_slow_lanes|idempotency_keys) /,
      /^UPDATE idempotency_keys SET key = NULL/,
      /^SELECT id, reference FROM videos/
    ],
    extent: "several",
    why: "by age",
    needs: "a run on each shard, or partitions by time within it"
  },
  {
    name: "processes, circuits, catalogs, operators, schema",
    texts: [
      /^(?:INSERT INTO|UPDATE|DELETE FROM) (?:instances|instance_catalogs|price_lists|route_health|operator_sessions|operator_links|usage_bounds)\b/,
      /^SELECT name FROM media_removals/,
      /^SELECT .* FROM (?:schema_migrations|usage_bounds|catalog_generation)\b/
    ],
    extent: "none",
    why: "of processes and operators",
    needs: "local tables, the same for all"
  }
]
