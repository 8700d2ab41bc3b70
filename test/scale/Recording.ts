import { SqlClient, Statement } from "@effect/sql"
import { Effect, Layer, Schema } from "effect"
import { Prepared } from "../../src/services/sql/Statement.ts"
import type { Extent } from "./HotStatements.ts"

/** One run of a statement, with the words among its values that may be ids. */
export interface Run {
  readonly text: string
  readonly words: ReadonlySet<string>
}

const collapse = (text: string) => text.replaceAll(/\s+/g, " ").trim()

/** Ids, hashes and secrets; a text or a JSON document is searched for them. */
const wordsOf = (value: unknown): ReadonlyArray<string> =>
  value instanceof Uint8Array
    ? [Buffer.from(value).toString("hex")]
    : ((JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part)) ?? "")
        .replaceAll("\\x", "")
        .match(/[\w-]{16,}/g) ?? [])

/** Keeps what each run of a statement was given. */
export const makeRecorder = () => {
  const runs: Array<Run> = []
  const record = (text: string, values: ReadonlyArray<unknown>) =>
    void runs.push({ text: collapse(text), words: new Set(values.flatMap(wordsOf)) })
  const ofTemplates = Statement.setTransformer((statement) =>
    Effect.sync(() => {
      record(...statement.compile())
      return statement
    })
  )
  const ofPrepared = Layer.effect(
    Prepared,
    Effect.map(Prepared, ({ run }) => ({
      run: (query) =>
        Effect.suspend(() => {
          record(query.text, query.values)
          return run(query)
        })
    }))
  )
  return { runs, layer: Layer.merge(ofTemplates, ofPrepared) }
}

const Tables = Schema.decodeUnknown(Schema.Array(Schema.Struct({ name: Schema.String })))
const Rows = Schema.decodeUnknown(Schema.Array(Schema.Struct({ org: Schema.String, row: Schema.String })))
const Writes = Schema.decodeUnknown(
  Schema.Array(Schema.Struct({ text: Schema.String, orgs: Schema.Array(Schema.String) }))
)

const organizationOf = (name: string) =>
  name === "organizations"
    ? "rows.id"
    : `coalesce(to_jsonb(rows)->>'org_id', (SELECT org_id FROM api_keys WHERE id = to_jsonb(rows)->>'key_id'))`

/** Tables whose rows each belong to an organization. */
const ownedTables = (sql: SqlClient.SqlClient) =>
  Effect.flatMap(
    sql`
      SELECT DISTINCT tables.table_name AS name FROM information_schema.columns JOIN information_schema.tables USING (table_name)
      WHERE tables.table_schema = 'public' AND table_type = 'BASE TABLE'
        AND (column_name IN ('org_id', 'key_id') OR tables.table_name = 'organizations')
        AND tables.table_name <> 'written_rows'`,
    Tables
  ).pipe(Effect.map((tables) => tables.map(({ name }) => name)))

/** Has the database write down whose rows each statement changes, whatever function or trigger does it. */
export const recordWrites = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE UNLOGGED TABLE written_rows (xact xid8 NOT NULL, text text NOT NULL, org text)`
  for (const name of yield* ownedTables(sql)) {
    yield* sql.unsafe(`
      CREATE FUNCTION note_${name}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO written_rows SELECT pg_current_xact_id(), current_query(), ${organizationOf(name)}
        FROM (SELECT (CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END).*) AS rows;
        RETURN NULL;
      END $$;
      CREATE TRIGGER note_written AFTER INSERT OR UPDATE OR DELETE ON ${name}
        FOR EACH ROW EXECUTE FUNCTION note_${name}()`)
  }
})

/** Words that stand in rows of one organization only, with that organization. */
const ownersOf = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const owners = new Map<string, Set<string>>()
  for (const name of yield* ownedTables(sql)) {
    const rows = yield* Effect.flatMap(
      sql.unsafe(`SELECT ${organizationOf(name)} AS org, to_jsonb(rows)::text AS row FROM ${name} AS rows`),
      Rows
    )
    for (const { org, row } of rows) {
      for (const word of wordsOf(row)) owners.set(word, (owners.get(word) ?? new Set()).add(org))
    }
  }
  return new Map([...owners].flatMap(([word, [org, ...others]]) => (org && others.length === 0 ? [[word, org]] : [])))
})

/** Views, beside the tables, of rows that belong to organizations. */
const ownedViews = ["all_holds"]

/**
 * The extent of each statement of the recording, once its rows are written. One that names rows of organizations, but was
 * not always given whose, may touch those of any.
 */
export const extents = Effect.fnUntraced(function* (runs: ReadonlyArray<Run>) {
  const sql = yield* SqlClient.SqlClient
  const owners = yield* ownersOf
  const owned = new RegExp(`\\b(?:${[...(yield* ownedTables(sql)), ...ownedViews].join("|")})\\b`)
  const written = yield* Effect.flatMap(
    sql`SELECT text, array_agg(DISTINCT org) AS orgs FROM written_rows WHERE org IS NOT NULL GROUP BY xact, text`,
    Writes
  )
  const given = new Map<string, Array<number>>()
  for (const { text, words } of runs) {
    const { size } = new Set([...words].flatMap((word) => owners.get(word) ?? []))
    given.set(text, [...(given.get(text) ?? []), size])
  }
  const changed = new Map<string, number>()
  for (const { orgs, text } of written) {
    changed.set(collapse(text), Math.max(changed.get(collapse(text)) ?? 0, orgs.length))
  }
  const extentOf = (text: string, sizes: ReadonlyArray<number>): Extent => {
    if (Math.max(changed.get(text) ?? 0, ...sizes) > 1) return "several"
    if (Math.min(...sizes) === 1) return "one"
    return owned.test(text) || changed.has(text) ? "several" : "none"
  }
  return new Map([...given].map(([text, sizes]) => [text, extentOf(text, sizes)]))
})
