import { SqlClient } from "@effect/sql"
import { Clock, Context, Duration, Effect, Layer, Ref, Schedule, Schema } from "effect"
import { Ids } from "../runtime/Ids.ts"
import { InFlight } from "../runtime/InFlight.ts"
import { Timings, type TimingValues } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"

export const InstanceState = Schema.Literal("running", "silent", "stopped", "dead")

const age = (instance: string) => `extract(epoch FROM now() - ${instance}.beat_at)::float8`

/** Returns SQL: the seconds since the last heartbeat of a row of `instances`. */
export const beatAgeOf = (instance: string): string => `round((${age(instance)})::numeric, 1)::float8`

/** Returns SQL: whether the instance of a row of `instances` has not stopped and had a heartbeat within the duration. */
export const isAlive = (instance: string, within: Duration.Duration): string =>
  `is_alive(${instance}, ${Duration.toSeconds(within)} * interval '1 second')`

/** Returns SQL: the `InstanceState` of a row of `instances`. */
export const stateOf = (
  instance: string,
  { deadAfter, silentAfter }: Pick<TimingValues, "deadAfter" | "silentAfter">
): string => `CASE
  WHEN ${instance}.stopped_at IS NOT NULL THEN 'stopped'
  WHEN ${instance}.swept_at IS NOT NULL OR ${age(instance)} > ${Duration.toSeconds(deadAfter)} THEN 'dead'
  WHEN ${age(instance)} > ${Duration.toSeconds(silentAfter)} THEN 'silent'
  ELSE 'running'
END`

/** The worker processes of the same gateway, which share an address and stop together. */
export class Siblings extends Context.Reference<Siblings>()("gateway/Siblings", {
  defaultValue: (): {
    readonly register: (id: string) => Effect.Effect<void>
    readonly ids: Effect.Effect<ReadonlyArray<string>>
  } => ({ register: () => Effect.void, ids: Effect.succeed([]) })
}) {}

/**
 * Renews this instance's heartbeat. After `stopAfter` without one the instance refuses requests and aborts running ones,
 * because other instances release its holds after `deadAfter`.
 */
export class Instance extends Context.Tag("gateway/Instance")<
  Instance,
  {
    /** Changes if other instances have treated this process as dead. */
    readonly id: Effect.Effect<string>
    readonly isAdmitting: () => boolean
    /** False while heartbeats are overdue, which means that writes to the database do not complete. */
    readonly isBeating: () => boolean
    /** Whether an instance that is no sibling runs. True also if the query fails or takes more than 3 s. */
    readonly hasPeers: Effect.Effect<boolean>
  }
>() {
  static readonly layer = Layer.scoped(
    Instance,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const inFlight = yield* InFlight
      const siblings = yield* Siblings
      const { heartbeatEvery, silentAfter, stopAfter } = yield* Timings

      const register = Effect.gen(function* () {
        const id = ids.uuid()
        yield* sql`INSERT INTO instances (id) VALUES (${id})`
        yield* siblings.register(id)
        return id
      })
      const current = yield* Ref.make(yield* Effect.orDie(register))
      const lastBeatAt = yield* Ref.make(yield* Clock.currentTimeNanos)
      let isAdmitting = true
      let isBeating = true

      const beat = Effect.gen(function* () {
        const startedAt = yield* Clock.currentTimeNanos
        const id = yield* Ref.get(current)
        const renewedRows = yield* sql`
          UPDATE instances SET beat_at = now() WHERE id = ${id} AND swept_at IS NULL RETURNING id`
        if (renewedRows.length === 0) {
          yield* Effect.logWarning("Other instances treated this one as dead; it continues with a new id")
          yield* inFlight.abort
          yield* Ref.set(current, yield* register)
        }
        yield* Ref.set(lastBeatAt, startedAt)
        isBeating = true
        if (isAdmitting) return
        isAdmitting = true
        yield* Effect.logInfo("Heartbeat restored: accepting requests again")
      }).pipe(Effect.catchAllCause((cause) => logFailure("Heartbeat failed", cause)))

      const watch = Effect.gen(function* () {
        const silence = (yield* Clock.currentTimeNanos) - (yield* Ref.get(lastBeatAt))
        isBeating = Duration.lessThan(Duration.nanos(silence), Duration.times(heartbeatEvery, 2))
        if (Duration.lessThan(Duration.nanos(silence), stopAfter)) return
        if (!isAdmitting) return
        isAdmitting = false
        yield* Effect.logError(
          `No heartbeat for ${Duration.toSeconds(stopAfter)} s: refusing requests, aborting those that run`
        )
        yield* inFlight.abort
      })

      const hasPeers = Effect.flatMap(
        Effect.all([Ref.get(current), siblings.ids]),
        ([id, others]) => sql`
          SELECT 1 FROM instances 
          WHERE id <> ALL (${[id, ...others]}::uuid[]) AND ${sql.literal(isAlive("instances", silentAfter))} LIMIT 1`
      ).pipe(
        Effect.interruptible,
        Effect.timeout("3 seconds"),
        Effect.map((rows) => rows.length > 0),
        // A wrong `true` delays the stop by seconds. A wrong `false` loses requests.
        Effect.orElseSucceed(() => true)
      )

      yield* beat.pipe(Effect.uninterruptible, Effect.schedule(Schedule.spaced(heartbeatEvery)), Effect.forkScoped)
      yield* watch.pipe(Effect.repeat(Schedule.spaced("1 second")), Effect.forkScoped)
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(Ref.get(current), (id) => sql`UPDATE instances SET stopped_at = now() WHERE id = ${id}`).pipe(
          Effect.interruptible,
          Effect.timeout("5 seconds"),
          Effect.ignore
        )
      )

      return Instance.of({ id: Ref.get(current), isAdmitting: () => isAdmitting, isBeating: () => isBeating, hasPeers })
    })
  )
}
