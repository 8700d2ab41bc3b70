import type * as Pg from "pg"

export type Settings = Readonly<Record<string, string>>

/**
 * Settings on which our statements and backups rely. They override those of the role, the database and the server. Operators
 * may still set others, such as `search_path`, `role`, `default_transaction_read_only` and `synchronous_commit`.
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

/** Skips settings that the server does not have, because it is older. */
const setAll = `SELECT count(set_config(name, value, false))
  FROM unnest($1::text[], $2::text[]) AS wanted (name, value) JOIN pg_settings USING (name)`

/** Must run on every connection before its first statement. `own` adds to the required settings or overrides them. */
export const configure = async (client: Pg.ClientBase, own: Settings = {}): Promise<void> => {
  const settings = { ...required, ...own }
  await client.query(setAll, [Object.keys(settings), Object.values(settings)])
}

/** Connects and configures a client that is not in the pool. If this fails, the caller must end the client. */
export const open = async (client: Pg.Client, own?: Settings): Promise<Pg.Client> => {
  await client.connect()
  await configure(client, own)
  return client
}
