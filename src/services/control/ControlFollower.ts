import { hostname } from "node:os"
import { SqlClient } from "@effect/sql"
import { Cause, Context, Effect, Layer, Schedule, Schema } from "effect"
import { pluralize } from "../../domain/Plural.ts"
import { Catalog, type CatalogSnapshot } from "../catalog/Catalog.ts"
import { keepPriceLists } from "../catalog/PriceLists.ts"
import { Instance } from "../instance/Instance.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Timings } from "../runtime/Timings.ts"
import { toStorable } from "../sql/Statement.ts"
import { Reloads } from "./Reloads.ts"

const Controls = Schema.Struct({
  generation: Schema.Number,
  routes: Schema.Array(Schema.Struct({ route: Schema.String, disabled: Schema.Boolean, resets: Schema.Number }))
})
type Controls = typeof Controls.Type
const decode = Schema.decodeUnknown(Schema.Tuple(Controls))

const messageOf = (cause: Cause.Cause<Error>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Does here what operators tell all instances, within two seconds. */
export class ControlFollower extends Context.Tag("gateway/ControlFollower")<
  ControlFollower,
  {
    /** Reads the catalog and the credentials again on this instance only, and logs the outcome. */
    readonly reload: Effect.Effect<void>
  }
>() {
  static readonly layer = Layer.scoped(
    ControlFollower,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const catalog = yield* Catalog
      const router = yield* ProviderRouter
      const instance = yield* Instance
      const reloads = yield* Reloads
      const { readControlsEvery } = yield* Timings
      const resets = new Map<string, number>()
      let generation: number | undefined
      let problem: string | null = null
      let reads = 0
      let published = ""
      let kept: CatalogSnapshot | undefined

      /** Requests do not wait for it: what cannot be written now is written within the next seconds. */
      const keepPrices = Effect.suspend(() => {
        const { current } = catalog
        if (kept === current) return Effect.void
        return Effect.map(keepPriceLists(sql, current.models), () => {
          kept = current
        })
      }).pipe(
        Effect.uninterruptible,
        Effect.catchAllCause((cause) => Effect.logWarning("The rates of the catalog could not be written down", cause))
      )

      const reload = catalog.reload.pipe(
        Effect.tap(({ models }) => router.follow(models)),
        Effect.matchCauseEffect({
          onSuccess: ({ fingerprint, models }) => {
            problem = null
            return Effect.zipRight(
              keepPrices,
              Effect.logInfo(`The catalog was read again: ${fingerprint}, with ${pluralize(models.length, "model")}`)
            )
          },
          onFailure: (cause) => {
            problem = messageOf(cause)
            return Effect.logError(`The catalog stays as it was: ${problem}`)
          }
        }),
        Effect.ensuring(Effect.sync(() => (reads += 1))),
        Effect.zipLeft(reloads.run)
      )

      const applyControls = Effect.fnUntraced(function* ({ routes }: Controls) {
        yield* router.disable(new Set(routes.flatMap(({ disabled, route }) => (disabled ? route : []))))
        for (const { resets: count, route } of routes) {
          // What was reset before this instance started is closed anyway.
          if (generation !== undefined && count > (resets.get(route) ?? 0)) yield* router.reset(route)
          resets.set(route, count)
        }
      })

      const publish = Effect.gen(function* () {
        const id = yield* instance.id
        const { fingerprint, models } = catalog.current
        const text = JSON.stringify([id, generation, reads])
        if (text === published) return
        const row = {
          instance_id: id,
          host: hostname(),
          pid: process.pid,
          generation,
          fingerprint,
          models: models.length,
          problem: problem?.split("\n").map(toStorable).join("\n") ?? null
        }
        yield* sql`
          INSERT INTO instance_catalogs ${sql.insert(row)} ON CONFLICT (instance_id) DO UPDATE
          SET generation = EXCLUDED.generation, fingerprint = EXCLUDED.fingerprint, models = EXCLUDED.models,
            problem = EXCLUDED.problem, read_at = now()`
        published = text
      })

      const read = Effect.flatMap(
        sql`
          SELECT generation, (
            SELECT coalesce(json_agg(json_build_object('route', route, 'disabled', disabled_at IS NOT NULL, 'resets', resets)), '[]')
            FROM route_controls WHERE disabled_at IS NOT NULL OR resets > 0
          ) AS routes FROM catalog_generation`,
        decode
      )

      const follow = Effect.gen(function* () {
        const [controls] = yield* read
        yield* applyControls(controls)
        const isAsked = generation !== undefined && generation !== controls.generation
        generation = controls.generation
        if (isAsked) yield* reload
        yield* keepPrices
        yield* publish
      }).pipe(Effect.uninterruptible)

      const removeDead = sql`
        DELETE FROM instance_catalogs WHERE instance_id NOT IN (
          SELECT id FROM instances WHERE stopped_at IS NULL AND swept_at IS NULL
        )`

      // Disabled routes are known before the first request.
      yield* Effect.orDie(follow)
      yield* Effect.ignore(Effect.uninterruptible(removeDead))
      yield* follow.pipe(
        Effect.catchAllCause((cause) => Effect.logDebug("Controls of operators could not be read", cause)),
        Effect.schedule(Schedule.spaced(readControlsEvery)),
        Effect.forkScoped
      )
      return ControlFollower.of({ reload })
    })
  )
}
