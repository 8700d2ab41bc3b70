import { Effect } from "effect"
import type * as Pg from "pg"
import { busiest, former, newcomer } from "./GrownDatabase.ts"

/** Keeps the server from gathering statistics and from marking pages as visible to all, whenever it would. */
const withoutAutovacuum = `
  DO $$
  DECLARE
    name text;
  BEGIN
    FOR name IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', name);
    END LOOP;
  END $$;`

const owned = ["audit", "ledger_entries", "request_log", "videos", "webhook_deliveries"]

const moveAll = (from: string, to: string) =>
  owned.map((table) => `UPDATE ${table} SET org_id = '${to}' WHERE org_id = '${from}';`).join("\n")

/** What the planner may know of the rows. */
export const kinds = {
  /** As after a nightly vacuum. */
  fresh: "VACUUM ANALYZE",
  /** As after a restore or a crash. */
  none: `DELETE FROM pg_statistic;
    UPDATE pg_class SET reltuples = -1, relpages = 0, relallvisible = 0 WHERE relnamespace = 'public'::regnamespace;`,
  /** Of before the customers with most of the rows came. */
  stale: `SET session_replication_role = replica;
    UPDATE pg_class SET relallvisible = 0 WHERE relnamespace = 'public'::regnamespace;
    ${moveAll(busiest, `${newcomer}_1`)} ${moveAll(former, `${newcomer}_2`)}
    ANALYZE;
    ${moveAll(`${newcomer}_1`, busiest)} ${moveAll(`${newcomer}_2`, former)}`
} as const

export type Kind = keyof typeof kinds

export const gather = (client: Pg.Client, kind: Kind) => Effect.promise(() => client.query(kinds[kind]))

export const stopGathering = (client: Pg.Client) => Effect.promise(() => client.query(withoutAutovacuum))
