import { hostname } from "node:os"
import { SqlClient } from "@effect/sql"
import { Cause, Context, Effect, Layer, Schedule, Schema, type Scope } from "effect"
import { pluralize } from "../../domain/Wording.ts"
import { Catalog, type CatalogSnapshot } from "../catalog/Catalog.ts"
import { readRecentDiscounts, storePriceLists } from "../catalog/PriceLists.ts"
import { Instance } from "../instance/Instance.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Timings } from "../runtime/Timings.ts"
import { toStorable } from "../sql/SqlStatement.ts"

/**
 * What a reload runs besides the catalog's: the database and the media store register effects that reread their
 * credentials.
 */
export class Reloads extends Context.Reference<Reloads>()("gateway/Reloads", {
  defaultValue: (): {
    readonly register: (reload: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    readonly run: Effect.Effect<void>
  } => ({ register: () => Effect.void, run: Effect.void })
}) {
  static readonly layer = Layer.sync(Reloads, () => {
    const all = new Set<Effect.Effect<void>>()
    return {
      register: (reload) =>
        Effect.acquireRelease(
          Effect.sync(() => void all.add(reload)),
          () => Effect.sync(() => all.delete(reload))
        ),
      run: Effect.suspend(() => Effect.forEach([...all], (reload) => reload, { discard: true }))
    }
  })
}

const Controls = Schema.Struct({
  generation: Schema.Number,
  /** Changes whenever a discount does. */
  accessRevision: Schema.String,
  routes: Schema.Array(Schema.Struct({ route: Schema.String, disabled: Schema.Boolean, resets: Schema.Number }))
})
type Controls = typeof Controls.Type
const decode = Schema.decodeUnknown(Schema.Tuple(Controls))

const messageOf = (cause: Cause.Cause<Error>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message : String(error)
}

/** Applies operators' controls (disabled routes, circuit resets, reloads) to this instance, within two seconds. */
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
      let reloadCount = 0
      let publishedText = ""
      /** The current catalog, and replaced ones whose rates may not be stored completely. */
      const snapshots = new Set<CatalogSnapshot>()
      const discounts = new Set<number>()
      let discountsRevision: string | undefined
      /** How many of `discounts`, in their order, have stored rates. */
      const storedDiscounts = new WeakMap<CatalogSnapshot, number>()

      const logFailedStore = Effect.catchAllCause((cause: Cause.Cause<unknown>) =>
        Effect.logWarning("Storing the catalog's rates failed; the gateway retries", cause)
      )

      const storeSnapshot = Effect.fnUntraced(function* (snapshot: CatalogSnapshot, percents: ReadonlyArray<number>) {
        const storedCount = storedDiscounts.get(snapshot)
        if (storedCount === percents.length) return
        yield* storePriceLists(sql, snapshot.models, percents.slice(storedCount))
        storedDiscounts.set(snapshot, percents.length)
      })

      /** Reads all organizations' discounts, because another process may be killed before it stores its rates. */
      const readDiscounts = Effect.fnUntraced(function* ({ accessRevision }: Controls) {
        if (accessRevision === discountsRevision) return
        for (const percent of yield* readRecentDiscounts(sql)) discounts.add(percent)
        discountsRevision = accessRevision
      }, logFailedStore)

      /** Runs in the background, so requests do not wait for it. If it fails, the next read of the controls repeats it. */
      const storePrices = Effect.suspend(() => {
        snapshots.add(catalog.current)
        for (const snapshot of snapshots) for (const percent of snapshot.discounts) discounts.add(percent)
        const percents = [...discounts]
        // No request gets a price of these any more.
        const replaced = [...snapshots].filter((snapshot) => snapshot !== catalog.current)
        return Effect.map(
          Effect.forEach([...snapshots], (snapshot) => storeSnapshot(snapshot, percents)),
          () => {
            for (const snapshot of replaced) snapshots.delete(snapshot)
          }
        )
      }).pipe(logFailedStore)

      yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.interruptible(storePrices), "1 second")))

      const reload = Effect.suspend(() => {
        snapshots.add(catalog.current)
        return catalog.reload
      }).pipe(
        Effect.tap((snapshot) => {
          snapshots.add(snapshot)
          return router.follow(snapshot.models)
        }),
        Effect.matchCauseEffect({
          onSuccess: ({ fingerprint, models }) => {
            problem = null
            return Effect.zipRight(
              Effect.uninterruptible(storePrices),
              Effect.logInfo(`Catalog reloaded: ${fingerprint}, with ${pluralize(models.length, "model")}`)
            )
          },
          onFailure: (cause) => {
            problem = messageOf(cause)
            return Effect.logError(`Catalog reload failed, the previous catalog stays in use: ${problem}`)
          }
        }),
        Effect.ensuring(Effect.sync(() => (reloadCount += 1))),
        Effect.zipLeft(reloads.run)
      )

      const applyControls = Effect.fnUntraced(function* ({ routes }: Controls) {
        yield* router.disable(new Set(routes.flatMap(({ disabled, route }) => (disabled ? route : []))))
        for (const { resets: count, route } of routes) {
          // Resets from before this process's start need no action, because its circuits started closed.
          if (generation !== undefined && count > (resets.get(route) ?? 0)) yield* router.reset(route)
          resets.set(route, count)
        }
      })

      const publish = Effect.gen(function* () {
        const id = yield* instance.id
        const { fingerprint, models } = catalog.current
        const text = JSON.stringify([id, generation, reloadCount])
        if (text === publishedText) return
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
        publishedText = text
      })

      const read = Effect.flatMap(
        sql`
          SELECT generation, (SELECT revision FROM access_revision) AS access_revision, (
            SELECT coalesce(json_agg(json_build_object('route', route, 'disabled', disabled_at IS NOT NULL, 'resets', resets)), '[]')
            FROM route_controls WHERE disabled_at IS NOT NULL OR resets > 0
          ) AS routes FROM catalog_generation`,
        decode
      )

      const follow = Effect.gen(function* () {
        const [controls] = yield* read
        yield* applyControls(controls)
        const isReloadRequested = generation !== undefined && generation !== controls.generation
        generation = controls.generation
        if (isReloadRequested) yield* reload
        yield* readDiscounts(controls)
        yield* storePrices
        yield* publish
      }).pipe(Effect.uninterruptible)

      const removeDead = sql`
        DELETE FROM instance_catalogs WHERE instance_id NOT IN (
          SELECT id FROM instances WHERE stopped_at IS NULL AND swept_at IS NULL
        )`

      // Runs once before the layer is ready, because the first request must not use a disabled route.
      yield* Effect.orDie(follow)
      yield* Effect.ignore(Effect.uninterruptible(removeDead))
      yield* follow.pipe(
        Effect.catchAllCause((cause) => Effect.logDebug("Reading the operators' controls failed", cause)),
        Effect.schedule(Schedule.spaced(readControlsEvery)),
        Effect.forkScoped
      )
      return ControlFollower.of({ reload })
    })
  )
}
