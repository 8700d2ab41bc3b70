import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Logger, Ref } from "effect"
import { Catalog, type CatalogSnapshot } from "../../../src/services/catalog/Catalog.ts"
import { CatalogInvalid } from "../../../src/services/catalog/CatalogSource.ts"
import { readRecentDiscounts } from "../../../src/services/catalog/PriceLists.ts"
import { ControlFollower } from "../../../src/services/control/ControlFollower.ts"
import { RouteControls } from "../../../src/services/control/RouteControls.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { Instances } from "../../../src/services/instance/RunningGateway.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { eventually, times } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { load } from "../../harness/fixtures/Catalogs.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, describe, withLayer } from "../../harness/It.ts"

const problem = new CatalogInvalid({ problems: [{ file: "c.yaml", line: 3, key: "models", message: "is missing" }] })

/** A running instance whose catalog and router write down what they are told. */
const follow = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const told: { disabled: ReadonlyArray<string>; reset: Array<string>; reloads: number; followed: number } = {
    disabled: [],
    reset: [],
    reloads: 0,
    followed: 0
  }
  const current = yield* load({ sandbox: true })
  const next = yield* Ref.make<Effect.Effect<CatalogSnapshot, CatalogInvalid>>(Effect.succeed(current))
  const id = yield* Ref.make("")
  const register = Effect.gen(function* () {
    const [row] = yield* sql<{ readonly id: string }>`
      INSERT INTO instances (id) VALUES (gen_random_uuid()) RETURNING id`
    yield* Ref.set(id, row?.id ?? "")
  })
  yield* register
  yield* Effect.addFinalizer(() =>
    Effect.orDie(Effect.flatMap(Ref.get(id), (mine) => sql`UPDATE instances SET stopped_at = now() WHERE id = ${mine}`))
  )
  const reload = Effect.suspend(() => {
    told.reloads += 1
    return Effect.flatten(Ref.get(next))
  })
  const layers = ControlFollower.layer.pipe(
    Layer.provide(Layer.mock(Catalog, { current, accounts: [], reload })),
    Layer.provide(
      Layer.mock(ProviderRouter, {
        disable: (routes) => Effect.sync(() => void (told.disabled = [...routes])),
        reset: (route) => Effect.sync(() => void told.reset.push(route)),
        follow: () => Effect.sync(() => void (told.followed += 1))
      })
    ),
    Layer.provide(Layer.mock(Instance, { isAdmitting: () => true, isBeating: () => true, id: Ref.get(id) })),
    Layer.provide(Logger.remove(Logger.defaultLogger)),
    Layer.provide(Layer.succeed(Timings, complete({ readControlsEvery: Duration.millis(200) })))
  )
  const context = yield* Layer.build(layers)
  const seen = (isSo: () => boolean) => eventually(Effect.sync(isSo), (is) => is)
  return { told, next, seen, register, id: Ref.get(id), follower: Context.get(context, ControlFollower), current }
})

const services = Layer.merge(RouteControls.layer, Instances.layer).pipe(Layer.provideMerge(Postgres.layer))

withLayer(services)("the controls of an operator", (it) => {
  describe("of routes", () => {
    it.scoped("are known to an instance from its start, and followed while it runs", function* () {
      const controls = yield* RouteControls
      yield* controls.disable("m@a", "an outage")
      const { seen, told } = yield* follow
      assert.deepStrictEqual(told.disabled, ["m@a"])
      yield* controls.disable("m@b")
      yield* seen(() => told.disabled.length === 2)
      yield* controls.enable("m@a")
      yield* controls.enable("m@b")
      yield* seen(() => told.disabled.length === 0)
    })

    it.scoped("keep the time and the note of a route that is disabled again", function* () {
      const { disable, disabled, enable } = yield* RouteControls
      const first = yield* disable("m@c", "an outage\u0000")
      assert.deepStrictEqual([first.note, first.disabled_at === null], ["an outage?", false])
      assert.deepStrictEqual(yield* disable("m@c"), first)
      assert.strictEqual((yield* disable("m@c", "still")).note, "still")
      assert.deepStrictEqual(yield* disabled, [
        { id: "m@c", disabled: true, disabled_at: first.disabled_at, note: "still" }
      ])
      assert.deepStrictEqual(yield* enable("m@c"), {
        id: "m@c",
        disabled: false,
        disabled_at: null,
        note: null
      })
      assert.deepStrictEqual(yield* disabled, [])
    })

    it.scoped("reset a circuit once on each instance that runs", function* () {
      const { reset } = yield* RouteControls
      yield* reset("m@d")
      const { seen, told } = yield* follow
      yield* reset("m@d")
      yield* reset("m@e")
      yield* seen(() => told.reset.length === 2)
      yield* Effect.sleep("500 millis")
      assert.sameMembers(told.reset, ["m@d", "m@e"])
    })
  })

  describe("of the catalog", () => {
    const mine = Effect.fnUntraced(function* (id: Effect.Effect<string>) {
      const { list } = yield* Instances
      const instance = yield* id
      return (yield* list).find((one) => one.id === instance)
    })

    it.scoped("make an instance read it again once, and answer with what it serves", function* () {
      const { requestReload: request } = yield* Instances
      yield* request
      const { current, id, told } = yield* follow
      assert.strictEqual(told.reloads, 0)
      const asked = yield* request
      const answer = yield* eventually(mine(id), (one) => one?.generation === asked)
      assert.deepInclude(answer ?? {}, {
        pid: process.pid,
        fingerprint: current.fingerprint,
        models: 3,
        problem: null
      })
      assert.deepStrictEqual([told.reloads, told.followed], [1, 1])
    })

    it.scoped("are answered with the problem where it is refused, until a reload is taken", function* () {
      const { requestReload: request } = yield* Instances
      const { current, follower, id, next, told } = yield* follow
      yield* Ref.set(next, problem)
      const asked = yield* request
      const refused = yield* eventually(mine(id), (one) => one?.generation === asked)
      assert.deepInclude(refused ?? {}, { problem: "c.yaml:3: models: is missing", fingerprint: current.fingerprint })
      assert.strictEqual(told.followed, 0)
      yield* Ref.set(next, Effect.succeed(current))
      yield* follower.reload
      yield* eventually(mine(id), (one) => one?.problem === null)
    })

    it.scoped("survive a defect, and an instance that was treated as dead", function* () {
      const { requestReload: request } = yield* Instances
      const { id, next, register, told } = yield* follow
      yield* Ref.set(next, Effect.dieMessage("a bug"))
      const asked = yield* request
      yield* eventually(mine(id), (one) => one?.generation === asked && one.problem === "a bug")
      yield* register
      yield* eventually(mine(id), (one) => one?.generation === asked)
      assert.strictEqual(told.reloads, 1)
      for (const _ of times(2)) yield* request
      yield* eventually(mine(id), (one) => one?.generation === asked + 2)
    })
  })

  it.effect("include discounts of the last week, without a read of the older audit log", function* () {
    const sql = yield* SqlClient.SqlClient
    const log = (action: string, days: number, count: number, before: object | null) => sql`
      INSERT INTO audit (at, actor, via, action, before)
      SELECT now() - ${days} * interval '1 day', 'ada', 'api', ${action}, ${before && JSON.stringify(before)}::json
      FROM generate_series(1, ${count})`
    yield* log("organizations.update", 8, 20_000, { discount_percent: 11 })
    yield* log("organizations.update", 6, 3, { discount_percent: 12 })
    yield* log("organizations.delete", 5, 1, { discount_percent: -13.5 })
    yield* log("organizations.update", 4, 1, { name: "of an older version" })
    yield* log("organizations.update", 4, 1, null)
    yield* log("keys.update", 3, 1, { discount_percent: "14" })
    yield* sql`ANALYZE audit`
    const reads = sql`
      SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS rows
      FROM pg_stat_xact_user_tables WHERE relname = 'audit'`
    const [discounts, [row]] = yield* sql.withTransaction(Effect.all([readRecentDiscounts(sql), reads]))
    assert.deepStrictEqual(discounts, [-13.5, 12])
    assert.isBelow(Number(row?.["rows"]), 100)
  })
})
