import { createHash } from "node:crypto"
import { SqlClient, SqlError } from "@effect/sql"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { ChangesLimited, InvalidRequest } from "../../domain/Failure.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull, UnixSeconds } from "../resources/ResourceRecord.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { listing } from "../sql/Listing.ts"
import { inTimeRange, lockName, recordsOf, rowsOf, whenDefined } from "../sql/SqlStatement.ts"
import { CurrentActor } from "./Actor.ts"

// Overrides the JSON schema of `Schema.Unknown`, because that has an $id, which a document must not contain twice.
const recordOrNull = (description: string) =>
  Schema.Unknown.annotations({ jsonSchema: { type: ["object", "null"], description } })

export const AuditRow = Schema.Struct({
  id: Schema.Number,
  at: UnixSeconds,
  actor: Schema.String.annotations({ description: "An operator's name, or `cli:` and the user of the command." }),
  via: Schema.Literal("cli", "api", "console"),
  action: Schema.String.annotations({ description: "The action, such as `organizations.suspend`." }),
  target: TextOrNull,
  org: Schema.NullOr(OrgId),
  org_name: TextOrNull,
  before: recordOrNull("The record before the change, or null if there was none."),
  after: recordOrNull("The record after the change, or null if there is none.")
}).annotations({ identifier: "AuditRow" })
export type AuditRow = typeof AuditRow.Type

/** The limit of each organization's members. Each change adds a permanent row to the audit log. */
const maxPerMinute = 60
const maxConcurrent = 8
/** The check reads only so many of the newest rows, including operators' changes. */
const maxRows = 1_000

const LimitReached = Schema.Struct({ waitSeconds: Schema.Number })

const makeMemberChanges = (sql: SqlClient.SqlClient) =>
  Effect.map(makeKeyedSemaphore(maxConcurrent), (withSlot) => ({
    /** Queues an organization's changes, because a change that waits for its locks would occupy a database connection. */
    queue: (org: OrgId | undefined) => (org === undefined ? <A>(change: A) => change : withSlot(org)),
    /** Fails if members made `maxPerMinute` changes in the last minute. Must run in the transaction of the change. */
    check: Effect.fnUntraced(function* (org: OrgId) {
      const [limitReached] = yield* rowsOf(LimitReached)(sql`
        SELECT ceil(extract(epoch FROM at + interval '1 minute' - now()))::integer AS wait_seconds
        FROM (SELECT id, at, operator_id FROM audit WHERE org_id = ${org} ORDER BY id DESC LIMIT ${maxRows}) AS newest
        WHERE at > now() - interval '1 minute' AND operator_id IN (SELECT id FROM operators WHERE org_id = ${org})
        ORDER BY id DESC OFFSET ${maxPerMinute - 1} LIMIT 1`)
      if (limitReached === undefined) return
      return yield* new ChangesLimited({
        limit: maxPerMinute,
        retryAfterSeconds: Math.max(1, limitReached.waitSeconds)
      })
    })
  }))

/** Longer than any `run` of a recording takes. After that, a recording without a result has lost its gateway. */
const maxRunSeconds = 120

/** `record` must contain no secrets, because the audit log stores it. */
interface Audited<A, Record, Encoded> {
  /** For example `organizations.suspend`. */
  readonly action: string
  /** The change's input. A repeated change with the same idempotency key must have the same input. */
  readonly input: unknown
  readonly record: Schema.Schema<Record, Encoded>
  readonly recordOf: (value: A) => Record
  readonly targetOf: (record: Record) => string
  readonly orgOf?: ((record: Record) => string | undefined) | undefined
}

interface Creation<A, Record, Encoded, E, R> extends Audited<A, Record, Encoded> {
  readonly run: Effect.Effect<A, E, R>
}

/** A change for which `run` calls other systems. */
interface Recording<A, Record, Encoded, E, R>
  extends Pick<Creation<A, Record, Encoded, E, R>, "action" | "input" | "record" | "recordOf" | "run"> {
  /** The id of the object. */
  readonly target: string
}

/** A change of an existing resource. */
interface Change<A, Record, Encoded, E, R> extends Audited<A, Record, Encoded> {
  /** The id or name in the request. */
  readonly target: string
  readonly find: (reference: string) => Effect.Effect<Record | undefined, E, R>
  /** Runs under a lock on the id. */
  readonly run: (id: string) => Effect.Effect<A, E, R>
}

/** Either another change used the idempotency key, or members made too many changes. */
type AuditFailure = InvalidRequest | ChangesLimited

/** A recording with the same idempotency key has no result. */
export class RecordingUnfinished extends Data.TaggedError("RecordingUnfinished")<{}> {
  override get message() {
    return "The first request with this `Idempotency-Key` has no result. It still runs, or its gateway was killed. Use another key to try again."
  }
}

/** `value` is the result of the change; undefined if an idempotent replay made none. */
export interface Changed<A, Record> {
  readonly record: Record
  readonly value: A | undefined
}

interface AuditQuery {
  readonly actor?: string | undefined
  /** An action such as `keys.revoke`, or a resource such as `keys` for all of its actions. */
  readonly action?: string | undefined
  /** The id of the changed object. */
  readonly target?: string | undefined
  readonly org?: OrgId | undefined
  /** Unix milliseconds; `until` is exclusive. */
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly after?: string | undefined
  readonly limit: number
}

const AppliedChange = Schema.Struct({ fingerprint: Schema.String, after: Schema.Unknown })

const fingerprintOf = (action: string, target: string | undefined, input: unknown): string =>
  createHash("sha256")
    .update(
      JSON.stringify([action, target, input], (_, value) => (typeof value === "bigint" ? value.toString() : value))
    )
    .digest("hex")

/** The log of operators' changes. Each change and its row are written in one transaction, except for recordings. */
export class Audit extends Context.Tag("gateway/Audit")<
  Audit,
  {
    readonly create: <A, Record, Encoded, E, R>(
      creation: Creation<A, Record, Encoded, E, R>
    ) => Effect.Effect<Changed<A, Record>, E | AuditFailure, R | CurrentActor>
    /**
     * Like `create`, for a `run` that calls other systems. It commits its row before `run`, which then occupies no database
     * connection and is in the log even if the gateway is killed. A failed `run` is not logged. Uninterruptible, so every
     * result is recorded.
     */
    readonly record: <A, Record, Encoded, E, R>(
      recording: Recording<A, Record, Encoded, E, R>
    ) => Effect.Effect<Changed<A, Record>, E | AuditFailure | RecordingUnfinished, R | CurrentActor>
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
      const withIdempotencyKey = yield* makeKeyedSemaphore(maxConcurrent)

      /** Returns the new row's id, or undefined if a row with the same idempotency key exists. */
      const insertRow = Effect.fnUntraced(function* (
        action: string,
        fingerprint: string,
        target: string | null = null
      ) {
        const { idempotencyKey = null, name, operator = null, via } = yield* CurrentActor
        const [row] = yield* rowsOf(Schema.Struct({ id: Schema.String }))(sql`
          INSERT INTO audit (actor, via, operator_id, action, target, idempotency_key, fingerprint)
          VALUES (${name}, ${via}, ${operator}, ${action}, ${target}, ${idempotencyKey}, ${fingerprint})
          ON CONFLICT (operator_id, idempotency_key) DO NOTHING RETURNING id`)
        return row?.id
      })

      /** Returns the change with the same idempotency key; undefined if it failed since, which freed the key. */
      const findApplied = Effect.gen(function* () {
        const { idempotencyKey = null, operator = null } = yield* CurrentActor
        const [applied] = yield* rowsOf(AppliedChange)(sql`
          SELECT fingerprint, after FROM audit WHERE operator_id = ${operator} AND idempotency_key = ${idempotencyKey}`)
        return applied
      })

      const replay = Effect.fnUntraced(function* <Record, Encoded>(
        record: Schema.Schema<Record, Encoded>,
        fingerprint: string,
        applied: typeof AppliedChange.Type | undefined
      ) {
        if (applied?.fingerprint !== fingerprint) {
          const message = "The `Idempotency-Key` was used for another change."
          return yield* new InvalidRequest({ message, param: null })
        }
        return applied.after === null ? undefined : yield* Effect.orDie(Schema.decodeUnknown(record)(applied.after))
      })

      /** For a replay, returns the stored record and does not find the target, which may have been renamed or deleted since. */
      const audit = <A, Record, Encoded, E, R>(
        { action, input, orgOf, record, recordOf, targetOf }: Audited<A, Record, Encoded>,
        target: string | undefined,
        run: Effect.Effect<{ readonly before: Record | undefined; readonly value: A }, E, R>
      ): Effect.Effect<Changed<A, Record>, E | AuditFailure, R | CurrentActor> =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const fingerprint = fingerprintOf(action, target, input)
          const encode = (value: Record) => Effect.map(Effect.orDie(Schema.encode(record)(value)), JSON.stringify)
          const row = yield* insertRow(action, fingerprint)
          if (row === undefined) {
            const stored = yield* replay(record, fingerprint, yield* findApplied)
            return {
              record: stored ?? (yield* Effect.dieMessage("a committed change has no record")),
              value: undefined
            }
          }
          if (scope.org !== undefined) yield* members.check(scope.org)
          const { before, value } = yield* run
          const after = recordOf(value)
          yield* Effect.orDie(sql`
            UPDATE audit SET target = ${targetOf(after)}, org_id = ${orgOf?.(after) ?? null},
              before = ${before === undefined ? null : yield* encode(before)}::json, after = ${yield* encode(after)}::json
            WHERE id = ${row}`)
          return { record: after, value }
        }).pipe(
          sql.withTransaction,
          Effect.zipLeft(failpoint.reach("change_committed")),
          Effect.catchAll((error) => (error instanceof SqlError.SqlError ? Effect.die(error) : Effect.fail(error))),
          Effect.uninterruptible,
          (change) => Effect.flatMap(CurrentActor, ({ scope }) => members.queue(scope.org)(change))
        )

      /** Frees the idempotency key of a recording whose gateway was killed. Its row stays in the log. */
      const freeKey = Effect.gen(function* () {
        const { idempotencyKey, operator = null } = yield* CurrentActor
        if (idempotencyKey === undefined) return
        yield* sql`
          UPDATE audit SET idempotency_key = NULL WHERE operator_id = ${operator} AND idempotency_key = ${idempotencyKey}
            AND after IS NULL AND at <= now() - ${maxRunSeconds} * interval '1 second'`
      })

      /** Returns the id of the committed row; undefined if a row with the same idempotency key exists. */
      const beginRecording = Effect.fnUntraced(function* (action: string, fingerprint: string, target: string) {
        const { scope } = yield* CurrentActor
        yield* freeKey
        const row = yield* insertRow(action, fingerprint, target)
        if (row !== undefined && scope.org !== undefined) yield* members.check(scope.org)
        return row
      }, sql.withTransaction)

      const runRecording = <A, Record, Encoded, E, R>(
        recording: Recording<A, Record, Encoded, E, R>
      ): Effect.Effect<
        Changed<A, Record>,
        E | AuditFailure | RecordingUnfinished | SqlError.SqlError,
        R | CurrentActor
      > =>
        Effect.gen(function* () {
          const { action, input, record, recordOf, run, target } = recording
          const fingerprint = fingerprintOf(action, undefined, input)
          const row = yield* beginRecording(action, fingerprint, target)
          if (row === undefined) {
            const applied = yield* findApplied
            // The first recording failed on another instance after this one met its row.
            if (applied === undefined) return yield* runRecording(recording)
            const stored = yield* replay(record, fingerprint, applied)
            return { record: stored ?? (yield* new RecordingUnfinished()), value: undefined }
          }
          const value = yield* Effect.tapError(run, () => sql`DELETE FROM audit WHERE id = ${row}`)
          const after = recordOf(value)
          const json = yield* Effect.map(Effect.orDie(Schema.encode(record)(after)), JSON.stringify)
          yield* sql`UPDATE audit SET after = ${json}::json WHERE id = ${row}`
          return { record: after, value }
        })

      const lock = (id: string) => lockName(sql, `audit ${id}`)

      /** Finds the record under a lock on `target`. If `target` is a name, finds it again under a lock on the record's id. */
      const findLocked = <Record, E, R>(
        change: Pick<Change<never, Record, never, E, R>, "find" | "targetOf">,
        reference: string
      ): Effect.Effect<{ readonly id: string; readonly before: Record | undefined }, E, R> =>
        Effect.gen(function* () {
          yield* lock(reference)
          const before = yield* change.find(reference)
          const id = before === undefined ? reference : change.targetOf(before)
          return id === reference ? { id, before } : yield* findLocked(change, id)
        })

      return Audit.of({
        create: (creation) => {
          const run = Effect.map(creation.run, (value) => ({ value, before: undefined }))
          return audit(creation, undefined, run)
        },
        record: (recording) =>
          runRecording(recording).pipe(
            Effect.catchAll((error) => (error instanceof SqlError.SqlError ? Effect.die(error) : Effect.fail(error))),
            // A repeated change waits for the first one of this instance. Otherwise both would call the other system.
            (change) =>
              Effect.flatMap(CurrentActor, ({ idempotencyKey, operator }) =>
                idempotencyKey === undefined ? change : withIdempotencyKey(`${operator} ${idempotencyKey}`)(change)
              ),
            Effect.uninterruptible
          ),
        change: (change) => {
          const run = Effect.gen(function* () {
            const { scope } = yield* CurrentActor
            // Finds the record without a lock first. Otherwise a member could notice the activity of another
            // organization by a wait for its lock.
            if (scope.org !== undefined) yield* change.find(change.target)
            const { before, id } = yield* findLocked(change, change.target)
            return { value: yield* change.run(id), before }
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
