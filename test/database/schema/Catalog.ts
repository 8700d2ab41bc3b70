/** `readCatalog` returns everything in which two databases can differ for a program, without object ids. */

import { Effect } from "effect"
import type * as Pg from "pg"
import { query } from "../../../src/database/DatabaseConnections.ts"

const own = "current_schema()::regnamespace"

/**
 * Excludes whether a constraint was validated, which matters only for older rows. Also excludes parentheses of a
 * BETWEEN inside an AND, which depend on the original text, and names of NOT NULL, which older versions lack.
 */
const queries = {
  relations: `
    SELECT c.relname, c.relkind, c.relpersistence, c.relreplident, c.relispartition, c.relrowsecurity,
      c.relacl::text, t.spcname, am.amname, pg_get_partkeydef(c.oid) AS partkey, pg_get_expr(c.relpartbound, c.oid) AS bound,
      ARRAY(SELECT o FROM unnest(c.reloptions) AS o ORDER BY 1) AS options, obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class c LEFT JOIN pg_tablespace t ON t.oid = c.reltablespace LEFT JOIN pg_am am ON am.oid = c.relam
    WHERE c.relnamespace = ${own}`,
  columns: `
    SELECT c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum) AS position, a.attname,
      format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull, a.attidentity, a.attgenerated, a.attstorage,
      a.attcompression, nullif(a.attstattarget, -1) AS target, a.attoptions, a.attacl::text, a.attcollation::regcollation::text,
      pg_get_expr(d.adbin, d.adrelid) AS expression, col_description(c.oid, a.attnum) AS comment
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = ${own} AND c.relkind IN ('r', 'p', 'v', 'c', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped`,
  constraints: `
    SELECT conrelid::regclass::text AS "table", conname, contype, replace(pg_get_constraintdef(oid, true), ' NOT VALID', '') AS definition,
      coninhcount > 0 AS inherited, condeferrable, condeferred
    FROM pg_constraint WHERE connamespace = ${own} AND contype NOT IN ('n', 't')`,
  indexes: `
    SELECT i.indrelid::regclass::text AS "table", pg_get_indexdef(i.indexrelid) AS definition, i.indisunique, i.indisprimary,
      i.indisvalid, i.indisready, i.indisclustered, i.indisreplident, i.indimmediate, h.inhparent::regclass::text AS parent
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
    WHERE c.relnamespace = ${own}`,
  triggers: `
    SELECT tgrelid::regclass::text AS "table", tgname, tgenabled, tgparentid <> 0 AS inherited, pg_get_triggerdef(t.oid) AS definition
    FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE c.relnamespace = ${own} AND NOT tgisinternal`,
  views: `SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()`,
  functions: `
    SELECT oid::regprocedure::text AS signature, pg_get_functiondef(oid) AS definition, proacl::text, prosecdef, proleakproof
    FROM pg_proc WHERE pronamespace = ${own} AND prokind IN ('f', 'p')`,
  types: `
    SELECT typname, typtype, typcategory, obj_description(oid, 'pg_type') AS comment FROM pg_type WHERE typnamespace = ${own}`,
  sequences: `
    SELECT seqrelid::regclass::text AS name, seqtypid::regtype::text, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
      d.refobjid::regclass::text || '.' || d.refobjsubid AS owner
    FROM pg_sequence LEFT JOIN pg_depend d ON d.objid = seqrelid AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'`,
  statistics: `SELECT stxname, pg_get_statisticsobjdef(oid) AS definition FROM pg_statistic_ext WHERE stxnamespace = ${own}`,
  rules: `SELECT tablename, rulename, definition FROM pg_rules WHERE schemaname = current_schema() AND rulename <> '_RETURN'`,
  policies: `SELECT tablename, policyname FROM pg_policies WHERE schemaname = current_schema()`,
  extensions: `SELECT extname FROM pg_extension`,
  settings: `SELECT unnest(setconfig) AS setting FROM pg_db_role_setting WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())`
}

const selectTables = `
  SELECT relname AS name FROM pg_class WHERE relnamespace = ${own} AND relkind = 'r' ORDER BY relname`

const readLines = (connection: Pg.Client, text: string) =>
  Effect.map(query(connection, text), ({ rows }) => rows.map((row) => JSON.stringify(row)).toSorted())

export const readCatalog = (connection: Pg.Client) =>
  Effect.all(Object.fromEntries(Object.entries(queries).map(([name, text]) => [name, readLines(connection, text)])))

/** The rows of every table that has rows. */
export const readRows = Effect.fnUntraced(function* (connection: Pg.Client) {
  const tables = yield* query(connection, selectTables)
  const rows: Record<string, ReadonlyArray<Readonly<Record<string, unknown>>>> = {}
  for (const { name } of tables.rows) {
    const found = yield* query(connection, `SELECT * FROM "${name}" ORDER BY 1`)
    if (found.rows.length > 0) rows[name] = found.rows
  }
  return rows
})
