import { createHash } from "node:crypto"
import { SqlClient, SqlError } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { ChangesLimited, InvalidRequest } from "../../domain/Failure.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, UnixSeconds } from "../resources/Record.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { listing } from "../sql/Listing.ts"
import { inTimeRange, lockName, recordsOf, rowsOf, whenDefined } from "../sql/Statement.ts"
import { CurrentActor } from "./Actor.ts"

// The platform's schema of anything has an $id, which no document may have twice.
const recordOrNull = (description: string) =>
  Schema.Unknown.annotations({ jsonSchema: { type: ["object", "null"], description } })

export const AuditRow = Schema.Struct({
  id: Schema.Number,
  at: UnixSeconds,
  actor: Schema.String.annotations({ description: "An operator's name, or `cli:` and who ran the command." }),
  via: Schema.Literal("cli", "api", "console"),
  action: Schema.String.annotations({ description: "Such as `organizations.suspend`." }),
  target: TextOrNull,
  org: Schema.NullOr(OrgId),
  org_name: TextOrNull,
  before: recordOrNull("The record before the change; null where there was none."),
  after: recordOrNull("The record after the change; null where there is none.")
}).annotations({ identifier: "AuditRow" })
export type AuditRow = typeof AuditRow.Type

/** Per organization, because each change adds a permanent row to the audit. */
const maxPerMinute = 60
const maxAtOnce = 8
/** The check reads only the newest rows, which include operators' changes. */
const maxRows = 1_000

const Full = Schema.Struct({ waitSeconds: Schema.Number })

/** Limits the rate of members' changes. */
const makeMemberChanges = (sql: SqlClient.SqlClient) =>
  Effect.map(makeKeyedSemaphore(maxAtOnce), (inTurn) => ({
    /** Runs an organization's changes one at a time: those that wait for its locks would hold database connections. */
    inTurn: (org: OrgId | undefined) => (org === undefined ? <A>(change: A) => change : inTurn(org)),
    /** Fails if the last minute already has `maxPerMinute` changes. Run it in the transaction of the change. */
    check: Effect.fnUntraced(function* (org: OrgId) {
      const [full] = yield* rowsOf(Full)(sql`
        SELECT ceil(extract(epoch FROM at + interval '1 minute' - now()))::integer AS wait_seconds
        FROM (SELECT id, at, operator_id FROM audit WHERE org_id = ${org} ORDER BY id DESC LIMIT ${maxRows}) AS newest
        WHERE at > now() - interval '1 minute' AND operator_id IN (SELECT id FROM operators WHERE org_id = ${org})
        ORDER BY id DESC OFFSET ${maxPerMinute - 1} LIMIT 1`)
      if (full === undefined) return
      return yield* new ChangesLimited({ limit: maxPerMinute, retryAfterSeconds: Math.max(1, full.waitSeconds) })
    })
  }))

/** `record` is what is kept of a resource, and is without secrets. */
interface Audited<A, Record, Encoded> {
  /** Such as `organizations.suspend`. */
  readonly action: string
  /** What was asked, by which a repeated key is compared; undefined parts are left out. */
  readonly input: unknown
  readonly record: Schema.Schema<Record, Encoded>
  readonly recordOf: (value: A) => Record
  readonly targetOf: (record: Record) => string
  readonly orgOf?: ((record: Record) => string | undefined) | undefined
}

interface Creation<A, Record, Encoded, E, R> extends Audited<A, Record, Encoded> {
  readonly run: Effect.Effect<A, E, R>
}

/** A change of an existing resource. */
interface Change<A, Record, Encoded, E, R> extends Audited<A, Record, Encoded> {
  /** As the request names it, by id or by name. */
  readonly target: string
  readonly find: (reference: string) => Effect.Effect<Record | undefined, E, R>
  /** Its id is locked meanwhile. */
  readonly run: (id: string) => Effect.Effect<A, E, R>
}

/** An idempotency key that was used for another change, or too many changes by members. */
type AuditFailure = InvalidRequest | ChangesLimited

/** `value` is undefined where an earlier result was repeated. */
export interface Changed<A, Record> {
  readonly record: Record
  readonly value: A | undefined
}

interface AuditQuery {
  readonly actor?: string | undefined
  /** One action, or all of a resource such as `keys`. */
  readonly action?: string | undefined
  readonly target?: string | undefined
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** What a replay of the key's change answers. */
const AppliedChange = Schema.Struct({ fingerprint: Schema.String, after: Schema.Unknown })

const fingerprintOf = (action: string, target: string | undefined, input: unknown): string =>
  createHash("sha256")
    .update(
      JSON.stringify([action, target, input], (_, value) => (typeof value === "bigint" ? value.toString() : value))
    )
    .digest("hex")

/** What operators changed; each change and its row are one transaction. */
export class Audit extends Context.Tag("gateway/Audit")<
  Audit,
  {
    readonly create: <A, Record, Encoded, E, R>(
      creation: Creation<A, Record, Encoded, E, R>
    ) => Effect.Effect<Changed<A, Record>, E | AuditFailure, R | CurrentActor>
    readonly change: <A, Record, Encoded, E, R>(
      change: Change<A, Record, Encoded, E, R>
    ) => Effect.Effect<Changed<A, Record>, E | AuditFailure, R | CurrentActor>
    /** Newest first. */
    readonly list: (scope: OrganizationScope, query: AuditQuery) => Effect.Effect<ReadonlyArray<AuditRow>>
  }
>() {
  static readonly layer = Layer.effect(
    Audit,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const failpoint = yield* Failpoint
      const members = yield* makeMemberChanges(sql)

      /** Undefined: the key was used, and its change has been committed. */
      const begin = Effect.fnUntraced(function* (action: string, fingerprint: string) {
        const { idempotencyKey = null, name, operator = null, via } = yield* CurrentActor
        const [row] = yield* rowsOf(Schema.Struct({ id: Schema.String }))(sql`
          INSERT INTO audit (actor, via, operator_id, action, idempotency_key, fingerprint)
          VALUES (${name}, ${via}, ${operator}, ${action}, ${idempotencyKey}, ${fingerprint})
          ON CONFLICT (operator_id, idempotency_key) DO NOTHING RETURNING id`)
        return row?.id
      })

      const replay = Effect.fnUntraced(function* <Record, Encoded>(
        record: Schema.Schema<Record, Encoded>,
        fingerprint: string
      ) {
        const { idempotencyKey = null, operator = null } = yield* CurrentActor
        const [applied] = yield* rowsOf(AppliedChange)(sql`
          SELECT fingerprint, after FROM audit WHERE operator_id = ${operator} AND idempotency_key = ${idempotencyKey}`)
        if (applied?.fingerprint !== fingerprint) {
          const message = "The `Idempotency-Key` was used for another change."
          return yield* new InvalidRequest({ message, param: null })
        }
        return yield* Effect.orDie(Schema.decodeUnknown(record)(applied.after))
      })

      /** Nothing is looked up for a key that was used: what it changed may have another name by now, or be gone. */
      const audit = <A, Record, Encoded, E, R>(
        { action, input, orgOf, record, recordOf, targetOf }: Audited<A, Record, Encoded>,
        target: string | undefined,
        run: Effect.Effect<{ readonly was: Record | undefined; readonly value: A }, E, R>
      ): Effect.Effect<Changed<A, Record>, E | AuditFailure, R | CurrentActor> =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const fingerprint = fingerprintOf(action, target, input)
          const encode = (value: Record) => Effect.map(Effect.orDie(Schema.encode(record)(value)), JSON.stringify)
          const row = yield* begin(action, fingerprint)
          if (row === undefined) return { record: yield* replay(record, fingerprint), value: undefined }
          if (scope.org !== undefined) yield* members.check(scope.org)
          const { value, was } = yield* run
          const made = recordOf(value)
          yield* Effect.orDie(sql`
            UPDATE audit SET target = ${targetOf(made)}, org_id = ${orgOf?.(made) ?? null},
              before = ${was === undefined ? null : yield* encode(was)}::json, after = ${yield* encode(made)}::json
            WHERE id = ${row}`)
          return { record: made, value }
        }).pipe(
          sql.withTransaction,
          Effect.zipLeft(failpoint.reach("change_committed")),
          Effect.catchAll((error) => (error instanceof SqlError.SqlError ? Effect.die(error) : Effect.fail(error))),
          Effect.uninterruptible,
          (change) => Effect.flatMap(CurrentActor, ({ scope }) => members.inTurn(scope.org)(change))
        )

      const lock = (id: string) => lockName(sql, `audit ${id}`)

      /** A name is looked up under its own lock, and what it names once more under that of the id. */
      const findLocked = <Record, E, R>(
        change: Pick<Change<never, Record, never, E, R>, "find" | "targetOf">,
        reference: string
      ): Effect.Effect<{ readonly id: string; readonly was: Record | undefined }, E, R> =>
        Effect.gen(function* () {
          yield* lock(reference)
          const was = yield* change.find(reference)
          const id = was === undefined ? reference : change.targetOf(was)
          return id === reference ? { id, was } : yield* findLocked(change, id)
        })

      return Audit.of({
        create: (creation) => {
          const run = Effect.map(creation.run, (value) => ({ value, was: undefined }))
          return audit(creation, undefined, run)
        },
        change: (change) => {
          const run = Effect.gen(function* () {
            const { scope } = yield* CurrentActor
            // A member does not wait for the lock of what it cannot reach: how long it takes would tell.
            if (scope.org !== undefined) yield* change.find(change.target)
            const { id, was } = yield* findLocked(change, change.target)
            return { value: yield* change.run(id), was }
          })
          return audit(change, change.target, run)
        },
        list: Effect.fn("Audit.list")((scope: OrganizationScope, query: AuditQuery) => {
          const { action, actor, after, limit, org, target, ...range } = query
          return recordsOf(AuditRow)(sql`
            SELECT id::float8 AS id, at, actor, via, action, target, org_id AS org, before, after,
              (SELECT name FROM organizations WHERE organizations.id = org_id) AS org_name
            FROM audit ${listing(sql, {
              equal: { target, org_id: scope.narrow(org), actor },
              where: [
                ...whenDefined(
                  action,
                  (action) => sql`(action = ${action} OR action LIKE ${`${action.replace(/[\\%_]/g, "\\$&")}.%`})`
                ),
                ...inTimeRange(sql, "at", range),
                ...whenDefined(after, (id) => sql`id < ${id}::bigint`)
              ],
              by: ["audit.id"],
              limit
            })}`)
        })
      })
    })
  )
}
