import { existsSync } from "node:fs"
import { Data, Effect, Option, Redacted } from "effect"
import * as Pg from "pg"
import { databaseUrlForm, normalizeDatabaseUrl } from "../services/sql/DatabaseUrl.ts"

export type Server = Pick<Pg.ClientConfig, "connectionString" | "host" | "port" | "user" | "database" | "ssl">

/** A server whose credentials can be replaced while connections are open. */
export interface DatabaseServer {
  current: Server
  /** Reads the credentials again. Returns the server with new ones, or none if they have not changed. */
  readonly reread: Effect.Effect<Option.Option<Server>>
}

/** The message is one line for the operator and does not contain the password. */
export class DatabaseUnavailable extends Data.TaggedError("DatabaseUnavailable")<{ readonly message: string }> {}

/** Where Debian, Fedora, SUSE, RHEL, Alpine and macOS store the certificates that they trust. */
const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem"
]

const findSystemBundle = () => {
  const file = process.env["SSL_CERT_FILE"]
  return file === undefined || file === "" ? systemBundles.find(existsSync) : file
}

const setDefault = (parameters: URLSearchParams, name: string, value: string) => {
  if (!parameters.has(name)) parameters.set(name, value)
}

/** Replaces `ssl`, because the driver enables TLS for every value except `0`, even for `false`. */
const replaceSsl = (parameters: URLSearchParams) => {
  const word = parameters.get("ssl")
  if (word === null) return
  parameters.delete("ssl")
  if (/^(?:true|1|yes|on)$/i.test(word)) setDefault(parameters, "sslmode", "verify-full")
  else if (/^(?:false|0|no|off)$/i.test(word)) setDefault(parameters, "sslmode", "disable")
  else if (/^no-verify$/i.test(word)) setDefault(parameters, "sslmode", "no-verify")
  else throw new Error("ssl must be true, false or no-verify")
}

const verifyingModes = /^(?:allow|prefer|require|verify-ca|verify-full)$/

/**
 * The driver treats these modes as `verify-full`, but warns that later versions will not. Writes `verify-full` to avoid the
 * warning.
 */
const replaceMode = (parameters: URLSearchParams) => {
  const mode = parameters.get("sslmode")
  if (mode === null || mode === "disable" || mode === "no-verify") return
  if (!verifyingModes.test(mode))
    throw new Error("sslmode must be disable, allow, prefer, require, verify-ca, verify-full or no-verify")
  // With `uselibpqcompat`, each mode has the same meaning as in libpq, so it must not be replaced.
  if (parameters.get("uselibpqcompat") !== "true") parameters.set("sslmode", "verify-full")
}

/** Replaces `system` by a file, because the driver would read a file of that name. If none is found, removes it. */
const replaceSystemCertificates = (parameters: URLSearchParams) => {
  if (parameters.get("sslrootcert") !== "system") return
  const bundle = findSystemBundle()
  if (bundle === undefined) parameters.delete("sslrootcert")
  else parameters.set("sslrootcert", bundle)
  setDefault(parameters, "sslmode", "verify-full")
}

const serverOf = (normalized: string): Server => {
  const url = new URL(normalized)
  const parameters = new URLSearchParams(url.search)
  replaceSsl(parameters)
  replaceMode(parameters)
  replaceSystemCertificates(parameters)
  // Removes the limit, because the driver would also apply it to the statements of backups and migrations.
  parameters.delete("query_timeout")
  url.search = parameters.toString()
  const server = { connectionString: url.href }
  Reflect.construct(Pg.Client, [server])
  return server
}

const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return "it cannot be parsed"
  return "code" in error
    ? `a file of sslcert, sslkey or sslrootcert cannot be read (${String(error.code)})`
    : error.message.replace(/"[^"]*"/, "the one given").replace(/\.$/, "")
}

export const parse = (url: Redacted.Redacted): Effect.Effect<Server, DatabaseUnavailable> =>
  Effect.suspend(() => {
    const normalized = normalizeDatabaseUrl(Redacted.value(url))
    if (normalized === undefined) {
      return new DatabaseUnavailable({ message: `DATABASE_URL must be ${databaseUrlForm}.` })
    }
    return Effect.try({
      try: () => serverOf(normalized),
      catch: (error) => new DatabaseUnavailable({ message: `DATABASE_URL cannot be used: ${explain(error)}.` })
    })
  })

const isSameDatabase = (one: Server, other: Server): boolean => {
  const [a, b] = [one, other].map((server) => new Pg.Client(server))
  return a?.host === b?.host && a?.port === b?.port && a?.database === b?.database
}

/** Returns a server whose credentials are read again on request. Rejects another database, because its balances differ. */
export const renewable = (
  first: Server,
  read: Effect.Effect<Redacted.Redacted | undefined, { readonly message: string }>
): DatabaseServer => {
  let lastWarning: string | undefined
  const warnOnce = (message: string) =>
    Effect.suspend(() => {
      if (lastWarning === message) return Effect.void
      lastWarning = message
      return Effect.logWarning(message)
    })
  const server: DatabaseServer = {
    current: first,
    reread: Effect.gen(function* () {
      const url = yield* read
      const next = url === undefined ? server.current : yield* parse(url)
      if (next.connectionString === server.current.connectionString) return Option.none()
      if (isSameDatabase(next, server.current)) return Option.some(next)
      yield* warnOnce("DATABASE_URL names another server or database. Restart the gateway to use it")
      return Option.none()
    }).pipe(
      Effect.catchAll(({ message }) =>
        Effect.as(warnOnce(`The database credentials were not replaced: ${message}`), Option.none())
      )
    )
  }
  return server
}

export type SessionSettings = Readonly<Record<string, string>>

/**
 * Settings on which our statements and backups rely. They override those of the role, the database and the server. Operators
 * may still set others, such as `search_path`, `role`, `default_transaction_read_only` and `synchronous_commit`.
 */
const requiredSettings: SessionSettings = {
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
export const applySettings = async (client: Pg.ClientBase, own: SessionSettings = {}): Promise<void> => {
  const settings = { ...requiredSettings, ...own }
  await client.query(setAll, [Object.keys(settings), Object.values(settings)])
}

/** Connects and configures a client that is not in the pool. If this fails, the caller must end the client. */
export const openSession = async (client: Pg.Client, own?: SessionSettings): Promise<Pg.Client> => {
  await client.connect()
  await applySettings(client, own)
  return client
}
