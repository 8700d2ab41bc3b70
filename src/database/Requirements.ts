import type { SqlError } from "@effect/sql/SqlError"
import { Effect, Schema, type Scope } from "effect"
import * as Pg from "pg"
import { query, selectOne } from "./DatabaseConnections.ts"

/** The oldest major version of PostgreSQL that is tested. The newest is that of the embedded server. */
export const oldestTested = 15

type Connect = Effect.Effect<Pg.Client, SqlError, Scope.Scope>

const Server = Schema.Struct({
  database: Schema.String,
  encoding: Schema.String,
  role: Schema.String,
  replication: Schema.String
})

const findInvalidSetting = Effect.fnUntraced(function* (connection: Pg.Client) {
  const { database, encoding, replication, role } = yield* selectOne(
    connection,
    Server,
    `SELECT current_database() AS database, current_setting('server_encoding') AS encoding, session_user AS role,
       current_setting('session_replication_role') AS replication`
  )
  if (encoding !== "UTF8") {
    return `The database "${database}" has the encoding ${encoding}, which cannot store every text. Create one in UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.`
  }
  if (replication === "replica") {
    return `The role "${role}" has session_replication_role = ${replication}, which disables the triggers of the ledger. Reset it: ALTER ROLE … RESET session_replication_role.`
  }
  return undefined
})

const Privilege = Schema.Struct({
  role: Schema.String,
  schema: Schema.NullOr(Schema.String),
  creates: Schema.NullOr(Schema.Boolean)
})

/** Returns a line for the operator if the role may not create tables; otherwise undefined. */
export const findMissingPrivilege = Effect.fnUntraced(function* (connection: Pg.Client) {
  const { creates, role, schema } = yield* selectOne(
    connection,
    Privilege,
    `SELECT current_user AS role, current_schema() AS schema, has_schema_privilege(current_schema(), 'CREATE') AS creates`
  )
  if (schema === null) return `No schema in the search_path of the role "${role}" exists: create one.`
  if (creates === true) return undefined
  return `The role "${role}" may not create tables in the schema "${schema}". As the owner of the database: GRANT CREATE ON SCHEMA "${schema}" TO "${role}".`
})

const pidOf = (connection: Pg.Client) =>
  Effect.map(
    selectOne(connection, Schema.Struct({ pid: Schema.Number }), "SELECT pg_backend_pid() AS pid"),
    ({ pid }) => pid
  )

/** Detects PgBouncer in statement mode, which rejects every BEGIN as a protocol violation. */
const isUnsupported = ({ cause }: SqlError) => cause instanceof Pg.DatabaseError && cause.code === "08P01"

/** Returns whether two connections share one session of the server, as with a pooler in transaction mode. */
const sharesSessions = Effect.fnUntraced(
  function* (one: Pg.Client, other: Pg.Client) {
    const before = yield* pidOf(one)
    yield* query(other, "BEGIN")
    // A pooler with only one session never responds to the second query. The caller's time limit ends the wait.
    const isSharing = (yield* pidOf(other)) === before || (yield* pidOf(one)) !== before
    yield* query(other, "ROLLBACK")
    return isSharing
  },
  Effect.catchIf(isUnsupported, () => Effect.succeed(true))
)

/** The number of probes. One is not enough, because another client may use the shared session between its queries. */
const probes = 5

const sharedSessionsProblem =
  "DATABASE_URL points to a pooler that shares sessions between clients. The gateway needs session mode: set pool_mode = session in PgBouncer, or connect to PostgreSQL directly."

const findPooler = Effect.fnUntraced(function* (one: Pg.Client, connect: Connect) {
  const other = yield* connect
  const isSharing = yield* sharesSessions(one, other).pipe(
    Effect.repeat({ times: probes - 1, until: (isSharing) => isSharing })
  )
  return isSharing ? sharedSessionsProblem : undefined
})

const answerWithin = "10 seconds"
const tooFewSessionsProblem =
  "The database opened no second connection within 10 seconds. An instance needs up to 11: increase the pooler's pool size."

/** Returns a line for the operator if a gateway cannot use this database; otherwise undefined. */
export const findObstacle = (connect: Connect): Effect.Effect<string | undefined, SqlError> =>
  Effect.gen(function* () {
    const one = yield* connect
    return (yield* findInvalidSetting(one)) ?? (yield* findPooler(one, connect))
  }).pipe(
    Effect.scoped,
    Effect.timeoutTo({ duration: answerWithin, onTimeout: () => tooFewSessionsProblem, onSuccess: (found) => found })
  )
