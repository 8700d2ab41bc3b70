import { SqlClient } from "@effect/sql"
import { Clock, Context, Duration, Effect, Layer, Ref, Schedule } from "effect"
import { Ids } from "../runtime/Ids.ts"
import { InFlight } from "../runtime/InFlight.ts"
import { Timings } from "../runtime/Timings.ts"
import { logFailure } from "../sql/Outage.ts"
import { isAlive } from "./InstanceState.ts"

/** Other workers behind the same address; they stop together. */
export class Siblings extends Context.Reference<Siblings>()("gateway/Siblings", {
  defaultValue: (): {
    readonly register: (id: string) => Effect.Effect<void>
    readonly ids: Effect.Effect<ReadonlyArray<string>>
  } => ({ register: () => Effect.void, ids: Effect.succeed([]) })
}) {}

/** Without a heartbeat for `stopAfter` it refuses requests and aborts those that run, before others release its holds at `deadAfter`. */
export class Instance extends Context.Tag("gateway/Instance")<
  Instance,
  {
    /** Changes after other instances treated this process as dead. */
    readonly id: Effect.Effect<string>
    readonly isAdmitting: () => boolean
    /** False while heartbeats are overdue, because the database finishes no writes. */
    readonly isBeating: () => boolean
    /** Whether an instance lives behind another address, or may: the database has not told within 3 s. */
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
      const beatenAt = yield* Ref.make(yield* Clock.currentTimeNanos)
      let isAdmitting = true
      let isBeating = true

      const beat = Effect.gen(function* () {
        const startedAt = yield* Clock.currentTimeNanos
        const id = yield* Ref.get(current)
        const alive = yield* sql`
          UPDATE instances SET beat_at = now() WHERE id = ${id} AND swept_at IS NULL RETURNING id`
        if (alive.length === 0) {
          yield* Effect.logWarning("Other instances treated this one as dead; it continues under a new identity")
          yield* inFlight.abort
          yield* Ref.set(current, yield* register)
        }
        yield* Ref.set(beatenAt, startedAt)
        isBeating = true
        if (isAdmitting) return
        isAdmitting = true
        yield* Effect.logInfo("The heartbeat is back: accepting requests again")
      }).pipe(Effect.catchAllCause((cause) => logFailure("Heartbeat failed", cause)))

      const watch = Effect.gen(function* () {
        const silence = (yield* Clock.currentTimeNanos) - (yield* Ref.get(beatenAt))
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
        // Serving on in vain costs seconds, not serving on costs requests.
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
