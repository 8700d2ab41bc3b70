/**
 * `describeSchema` returns the text of `migrations/schema.sql`, from the catalog of a database that the migrations
 * created.
 */

import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { Effect, Schema } from "effect"
import type * as Pg from "pg"
import { query } from "../../../src/database/DatabaseConnections.ts"

const header = `-- The tables of the gateway as they are now. A new database is made from this file, an older one by the migrations.
-- \`npm run schema\` writes this file from the numbered migrations, so change the schema by a migration, then run it.
-- Comments are the exception: edit them here. Amounts are nano-USD (1e-9 USD) everywhere. The functions and triggers of
-- the tables are in functions/, except functions that a table cannot do without.`

/** A table, view, type or function. */
const Entry = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("table", "view", "type", "function"),
  name: Schema.String,
  /** The whole statement of a view or function, or the head and tail of a table or type. */
  head: Schema.String,
  tail: Schema.String,
  lines: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String, rest: Schema.Array(Schema.String) })),
  constraints: Schema.Array(Schema.String),
  indexes: Schema.Array(Schema.String),
  /** The entries that must be created before it. */
  needs: Schema.Array(Schema.String)
})
type Entry = typeof Entry.Type

/**
 * A constraint of one column is written as a part of the column if it has the name that PostgreSQL would choose. A new
 * table has no rows to validate.
 */
const selectEntries = `
  WITH own AS (
    SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.reloptions, c.relispartition, c.reltype
    FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relname NOT IN ('schema_migrations', 'schema_functions')
  ), part AS (
    SELECT k.conrelid, k.oid, k.contype, k.conname,
      replace(pg_get_constraintdef(k.oid, true), ' NOT VALID', '') AS definition,
      CASE WHEN cardinality(k.conkey) = 1 AND k.conname = left(own.relname || CASE k.contype
        WHEN 'p' THEN '_pkey' WHEN 'u' THEN '_' || a.attname || '_key'
        WHEN 'f' THEN '_' || a.attname || '_fkey' ELSE '_' || a.attname || '_check' END, 63) THEN a.attnum END AS attnum
    FROM pg_constraint k JOIN own ON own.oid = k.conrelid
    LEFT JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
    WHERE k.contype IN ('p', 'u', 'f', 'c', 'x') AND k.coninhcount = 0
  ), owner AS (
    -- What each object of the catalog is a part of.
    SELECT 'pg_class'::regclass AS class, oid, oid AS entry FROM own WHERE relkind IN ('r', 'p', 'v', 'c')
    UNION ALL SELECT 'pg_class'::regclass, i.indexrelid, i.indrelid FROM pg_index i
    UNION ALL SELECT 'pg_type'::regclass, t.oid, t.typrelid FROM pg_type t WHERE t.typrelid <> 0
    UNION ALL SELECT 'pg_type'::regclass, t.typarray, t.typrelid FROM pg_type t WHERE t.typrelid <> 0
    UNION ALL SELECT 'pg_constraint'::regclass, k.oid, k.conrelid FROM pg_constraint k
    UNION ALL SELECT 'pg_attrdef'::regclass, d.oid, d.adrelid FROM pg_attrdef d
    UNION ALL SELECT 'pg_rewrite'::regclass, r.oid, r.ev_class FROM pg_rewrite r
    UNION ALL SELECT 'pg_proc'::regclass, p.oid, p.oid FROM pg_proc p
      WHERE p.pronamespace = current_schema()::regnamespace
  ), need AS (
    SELECT DISTINCT f.entry, t.entry AS needed FROM pg_depend d
    JOIN owner f ON f.class = d.classid AND f.oid = d.objid JOIN owner t ON t.class = d.refclassid AND t.oid = d.refobjid
    WHERE f.entry <> t.entry
  ), entry AS (
    SELECT own.oid, CASE own.relkind WHEN 'v' THEN 'view' WHEN 'c' THEN 'type' ELSE 'table' END AS kind, relname AS name,
      CASE WHEN relkind = 'c' THEN format('CREATE TYPE %I AS', relname)
        WHEN relkind = 'v' THEN format(E'CREATE VIEW %I AS\\n%s', relname, pg_get_viewdef(oid, true))
        ELSE format('CREATE %sTABLE %I', CASE relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, relname)
          || (SELECT format(' PARTITION OF %s %s', i.inhparent::regclass, pg_get_expr(c.relpartbound, c.oid))
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhrelid = own.oid
            UNION ALL SELECT '' WHERE NOT relispartition)
      END AS head,
      CASE WHEN relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(oid) ELSE '' END
        || coalesce(' WITH (' || (SELECT string_agg(replace(o, '=', ' = '), ', ') FROM unnest(reloptions) AS o) || ')', '')
        AS tail
    FROM own WHERE relkind IN ('r', 'p', 'v', 'c')
    UNION ALL
    SELECT p.oid, 'function', p.proname || '/' || p.pronargs, pg_get_functiondef(p.oid), ''
    FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.prokind IN ('f', 'p')
  )
  SELECT oid::text AS id, kind, name, head, tail,
    ARRAY(SELECT json_build_object('name', quote_ident(a.attname), 'type', format_type(a.atttypid, a.atttypmod), 'rest',
        array_remove(ARRAY[
          CASE WHEN a.attgenerated <> '' THEN 'GENERATED ALWAYS AS (' || pg_get_expr(d.adbin, d.adrelid, true) || ') STORED' END,
          CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' WHEN 'd' THEN 'GENERATED BY DEFAULT AS IDENTITY' END,
          CASE WHEN a.attnotnull AND a.attidentity = '' AND NOT EXISTS (SELECT FROM part
            WHERE conrelid = a.attrelid AND contype = 'p' AND part.attnum = a.attnum) THEN 'NOT NULL' END,
          CASE WHEN a.attgenerated = '' THEN 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid, true) END
        ] || ARRAY(SELECT regexp_replace(definition, '^(PRIMARY KEY|UNIQUE|FOREIGN KEY) \\([^)]*\\) ?', CASE contype
            WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ELSE '' END) FROM part
          WHERE conrelid = a.attrelid AND part.attnum = a.attnum
          ORDER BY array_position(ARRAY['p', 'u', 'f', 'c'], contype::text)), NULL))
      FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = entry.oid AND a.attnum > 0 AND NOT a.attisdropped AND kind IN ('table', 'type')
      ORDER BY a.attnum) AS lines,
    ARRAY(SELECT CASE WHEN contype <> 'p' OR conname <> entry.name || '_pkey' THEN format('CONSTRAINT %I ', conname) ELSE '' END
        || definition FROM part WHERE conrelid = entry.oid AND attnum IS NULL
      ORDER BY array_position(ARRAY['p', 'u', 'x', 'f', 'c'], contype::text), conname) AS constraints,
    ARRAY(SELECT replace(pg_get_indexdef(i.indexrelid, 0, true), ' ON ONLY ', ' ON ') FROM pg_index i
      JOIN own ON own.oid = i.indexrelid WHERE i.indrelid = entry.oid AND NOT own.relispartition
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
      -- As they were created: of two indexes of one cost, the planner takes the one that comes later.
      ORDER BY own.oid) AS indexes,
    ARRAY(SELECT needed::text FROM need WHERE need.entry = entry.oid ORDER BY needed) AS needs
  FROM entry ORDER BY array_position(ARRAY['table', 'type', 'view', 'function'], kind), oid`

/** Common words that replace PostgreSQL's own where both mean the same. */
const simplify = (definition: string) =>
  definition
    .replace(/'::text\b(?!\[)/g, "'")
    .replace(/ = ANY \(ARRAY\[([^\]]*)\]\)/g, " IN ($1)")
    .replace(/ <> ALL \(ARRAY\[([^\]]*)\]\)/g, " NOT IN ($1)")
    .replace(/ ~~ '/g, " LIKE '")
    .replace(/\btimestamp with time zone\b/g, "timestamptz")
    .replace(" USING btree", "")
    .replace(/(REFERENCES \w+)\(/, "$1 (")
    .replace(/\(\s*\n\s*/g, "(")
    .replace(/\s*\n\s*/g, " ")

const formatConstraint = (definition: string) => {
  const text = `  ${simplify(definition)}`
  return text.length < 120 ? text : text.replace(/ (CHECK|UNIQUE) /, "\n    $1 ")
}

const formatTable = ({ constraints, head, lines, tail }: Entry) => {
  if (head.includes(" PARTITION OF ")) return `${head}${tail};`
  const [names, types] = [lines.map(({ name }) => name), lines.map(({ type }) => simplify(type))]
  const nameWidth = Math.max(...names.map((name) => name.length))
  const columns = lines.map(({ rest }, index) =>
    `  ${names[index]?.padEnd(nameWidth)} ${[types[index], ...rest.map(simplify)].join(" ")}`.trimEnd()
  )
  return `${head} (\n${[...columns, ...constraints.map(formatConstraint)].join(",\n")}\n)${tail};`
}

const formatFunction = ({ head }: Entry) => {
  const [, declaration = "", body = ""] =
    /^CREATE OR REPLACE (.*?)\n((?:AS \$|RETURN|BEGIN ATOMIC).*)$/s.exec(head) ?? []
  const [kind, signature = ""] = simplify(declaration).split(/ (.*)/s)
  const unqualified = signature.replace(/^(?:"(?:[^"]|"")*"|\w+)\./, "")
  const quoted = body.includes("$$") ? body : body.replaceAll("$function$", () => "$$")
  return `CREATE ${kind} ${unqualified}${body.startsWith("AS") ? " " : "\n  "}${quoted.trimEnd()};`
}

const formatView = ({ head }: Entry) =>
  head
    .replaceAll("'::text", "'")
    .replace(/^ {1,3}(?=\S)/gm, "")
    .replace(/^ {4,}/gm, ({ length }) => " ".repeat(Math.max(2, (length - 4) / 2)))

const formatEntry = (entry: Entry) => {
  if (entry.kind === "function") return formatFunction(entry)
  if (entry.kind === "view") return formatView(entry)
  return formatTable(entry)
}

/** Returns the statement of an index, on two lines if it is long. */
const formatPart = (definition: string) => {
  const text = `${simplify(definition)};`
  if (text.length <= 120) return text
  const broken = text.replace(/ (WHERE) /, "\n  $1 ")
  return broken.replace(/^([^(\n]{1,120}) (\(.{40,})/, (whole, start: string, list: string) =>
    start.length + list.length < 120 ? whole : `${start}\n  ${list}`
  )
}

const opensBody = (line: string) => line.split("$$").length % 2 === 0

/**
 * Returns the name of what a line of SQL creates. Its comment is found by this name. Undefined for lines inside a
 * function and the like.
 */
function* namedLines(text: string): Generator<{ readonly line: string; readonly name: string | undefined }> {
  let table: string | undefined
  let end: string | undefined
  for (const line of text.split("\n")) {
    if (end !== undefined) {
      if (line.includes(end)) end = undefined
      yield { line, name: undefined }
      continue
    }
    const [, kind, created = ""] =
      /^(?:CREATE (?:OR REPLACE )?(?:UNLOGGED |UNIQUE )?(\w+)(?: CONCURRENTLY)?|ALTER (?:TABLE|TYPE)|INSERT INTO) (?:ONLY )?(\w+)/.exec(
        line
      ) ?? []
    if (created !== "") {
      const name =
        kind === "FUNCTION" ? `${created}/${countArguments(line)}` : `${kind ?? line.split(" ")[0]} ${created}`
      table = line.endsWith(";") ? undefined : created
      if (opensBody(line)) end = "$$"
      yield { line, name }
      continue
    }
    const column = /^ +(?:ADD (?:COLUMN )?)?(?:CONSTRAINT )?"?(\w+)/.exec(line)?.[1]
    yield { line, name: table !== undefined && column !== undefined ? `${table}.${column}` : undefined }
    if (line.endsWith(";")) table = undefined
    if (opensBody(line)) end = "$$"
  }
}

const countArguments = (line: string) => {
  const list = /\(([^)]*)\)/.exec(line)?.[1] ?? ""
  return list.trim() === "" ? 0 : list.split(",").length
}

/** Returns the comment before each line that creates something, or an empty text if there is none. */
const commentsOf = (text: string) => {
  const comments = new Map<string, string>()
  let comment: Array<string> = []
  for (const { line, name } of namedLines(text)) {
    if (/^ *--/.test(line)) comment.push(line.trim())
    else {
      if (name !== undefined) comments.set(name, comment.join("\n"))
      comment = []
    }
  }
  return comments
}

const addComments = (text: string, comments: ReadonlyMap<string, string>) =>
  Array.from(namedLines(text), ({ line, name }) => {
    const comment = name === undefined ? undefined : comments.get(name)
    return comment ? `${comment.replace(/^/gm, /^ */.exec(line)?.[0] ?? "")}\n${line}` : line
  }).join("\n")

/** Copies these rows from the migrations, because a value may be random or a time. */
const findInserts = (text: string) =>
  Array.from(text.matchAll(/^INSERT INTO (\w+)[^;]*;/gm), ([statement, table = ""]) => ({ table, statement }))

export const numberedFiles = (directory = "migrations"): ReadonlyArray<readonly [string, string]> =>
  readdirSync(directory)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .toSorted()
    .map((file) => [file, readFileSync(path.join(directory, file), "utf8")])

export const functionFiles = (directory = "migrations"): ReadonlyArray<readonly [string, string]> =>
  readdirSync(path.join(directory, "functions"))
    .toSorted()
    .map((file) => [`functions/${file}`, readFileSync(path.join(directory, "functions", file), "utf8")])

const decodeVersion = Schema.decodeSync(
  Schema.parseJson(Schema.Struct({ version: Schema.Int, checksum: Schema.String }))
)

const Records = Schema.Array(Schema.Struct({ id: Schema.Int, name: Schema.String, checksum: Schema.String }))

/** Keeps the comments of `previous`. A new table or function gets the comment that it has in its migration. */
export const describeSchema = Effect.fnUntraced(function* (connection: Pg.Client, previous: string) {
  const found = yield* query(connection, selectEntries)
  const entries = yield* Schema.decodeUnknown(Schema.Array(Entry))(found.rows)
  const applied = yield* query(connection, "SELECT id, name, checksum FROM schema_migrations ORDER BY id")
  const records = yield* Schema.decodeUnknown(Records)(applied.rows)
  const migrations = numberedFiles().map(([, text]) => text)
  const inserts = migrations.flatMap(findInserts)

  const blocks: Array<string> = []
  const placed = new Set<string>()
  const place = (id: string): void => {
    const entry = entries.find((each) => each.id === id)
    if (entry === undefined || placed.has(id)) return
    placed.add(id)
    entry.needs.forEach(place)
    const rows = inserts.filter(({ table }) => entry.kind === "table" && table === entry.name)
    const parts = [...entry.indexes.map(formatPart), ...rows.map(({ statement }) => statement)]
    blocks.push([formatEntry(entry), ...parts].join("\n"))
  }
  for (const { id, kind } of entries) if (kind !== "function") place(id)

  const values = records.map(({ checksum, id, name }) => `  (${id}, '${name}', '${checksum}')`)
  blocks.push(`INSERT INTO schema_migrations (id, name, checksum) VALUES\n${values.join(",\n")};`)
  const comments = new Map([...migrations, previous].flatMap((text) => [...commentsOf(text)]))
  return `${header}\n\n${addComments(blocks.join("\n\n"), comments)}\n`
})

/** Returns the text of `migrations/functions.json`: a version that increases whenever a file of functions changes. */
export const describeFunctions = (previous: string, directory = "migrations"): string => {
  const hash = createHash("sha256")
  for (const [file, text] of functionFiles(directory)) hash.update(`${file}\0${text}\0`)
  const checksum = hash.digest("hex")
  const { checksum: known, version } = decodeVersion(previous)
  return `${JSON.stringify({ version: checksum === known ? version : version + 1, checksum })}\n`
}
