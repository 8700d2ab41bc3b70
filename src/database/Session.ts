import type * as Pg from "pg"

export type Settings = Readonly<Record<string, string>>

/**
 * Our statements and backups rely on these settings, so they override those of the role, the database and the server.
 * Operators keep control of `search_path`, `role`, `default_transaction_read_only`, `synchronous_commit`, memory and
 * tablespaces.
 */
const required: Settings = {
  client_encoding: "UTF8",
  DateStyle: "ISO, MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  array_nulls: "on",
  transform_null_equals: "off",
  standard_conforming_strings: "on",
  default_transaction_isolation: "read committed",
  statement_timeout: "0",
  lock_timeout: "0",
  transaction_timeout: "0",
  idle_in_transaction_session_timeout: "0",
  idle_session_timeout: "0"
}

/** Skips settings that an older server lacks. */
const setAll = `SELECT count(set_config(name, value, false))
  FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)`

/** Every connection needs this before its first statement. `own` extends or overrides the required settings. */
export const configure = async (client: Pg.ClientBase, own: Settings = {}): Promise<void> => {
  const settings = { ...required, ...own }
  await client.query(setAll, [Object.keys(settings), Object.values(settings)])
}

/** Connects a client outside of the pool. If it fails, the caller ends the client. */
export const open = async (client: Pg.Client, own?: Settings): Promise<Pg.Client> => {
  await client.connect()
  await configure(client, own)
  return client
}
