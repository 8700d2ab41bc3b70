import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Exit, Fiber, TestClock } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ReadLimiter } from "../../../src/services/admin/ReadLimiter.ts"
import { eventually } from "../../database/EmbeddedDatabase.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { assert, describe, testOver, withLayer } from "../../harness/It.ts"
import { asOperator, drawn, generations, layer, MediaServer, post } from "../MediaServer.ts"

/** Every turn, until the end of the scope or before. */
const takeAll = Effect.gen(function* () {
  const { take } = (yield* ReadLimiter).of(OrganizationScope.all)
  const begun: Array<number> = []
  const end = yield* Deferred.make<void>()
  for (const one of [1, 2]) {
    yield* Effect.forkScoped(
      take(
        Effect.zipRight(
          Effect.sync(() => begun.push(one)),
          Deferred.await(end)
        )
      )
    )
  }
  yield* Effect.addFinalizer(() => Deferred.succeed(end, undefined))
  yield* eventually("the turns are taken", () => begun.length === 2)
  return { giveBack: Deferred.succeed(end, undefined) }
})

withLayer(layer)("an operator's report", (it) => {
  it.scoped("waits for its turn, while customers are served and short answers come at once", function* () {
    const { images } = yield* MediaServer
    const { admin } = yield* asOperator("read")
    const customer = yield* openAccount({})
    const { giveBack } = yield* takeAll
    const answered: Array<string> = []
    const paths = ["/usage", "/requests", "/ledger", "/usage.csv", "/requests.csv", "/ledger.csv"]
    const reports = yield* Effect.fork(
      Effect.forEach(paths, (path) => Effect.tap(admin(path), () => Effect.sync(() => answered.push(path))), {
        concurrency: "unbounded"
      })
    )
    images.script(Effect.succeed(drawn))
    const picture = yield* post(customer, generations, { model: "draw", prompt: "a hill" })
    assert.strictEqual(picture.status, 200)
    assert.strictEqual((yield* admin("/organizations")).status, 200)
    assert.deepStrictEqual(answered, [])
    yield* giveBack
    assert.deepStrictEqual(
      (yield* Fiber.join(reports)).map(({ status }) => status),
      paths.map(() => 200)
    )
    assert.strictEqual(read(yield* admin("/usage")).totals.requests, 1)
  })

  it.effect("is refused as busy when the database's time limit ends it; any other fault is unexpected", function* () {
    const sql = yield* SqlClient.SqlClient
    const { runOrBusy } = (yield* ReadLimiter).of(OrganizationScope.all)
    const cut = Effect.orDie(
      sql.withTransaction(Effect.zipRight(sql`SET LOCAL statement_timeout = 20`, sql`SELECT pg_sleep(9)`))
    )
    assert.strictEqual((yield* Effect.flip(runOrBusy(cut)))._tag, "GatewayBusy")
    assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.flip(runOrBusy(Effect.orDie(sql`SELECT 1 / 0`))))))
  })
})

const test = testOver(ReadLimiter.layer)

describe("a turn", () => {
  test("of members is not of operators, and one organization has one at a time", function* () {
    const turns = yield* ReadLimiter
    const scopeOf = (org: string) => OrganizationScope.only(OrgId.make(org))
    const end = yield* Deferred.make<void>()
    const hold = (scope: OrganizationScope) => Effect.fork(turns.of(scope).runOrBusy(Deferred.await(end)))
    const held = [yield* hold(scopeOf("org_a")), yield* hold(scopeOf("org_a"))]
    yield* TestClock.adjust("1 second")
    assert.strictEqual(yield* turns.of(OrganizationScope.all).runOrBusy(Effect.succeed("operator")), "operator")
    assert.strictEqual(yield* turns.of(scopeOf("org_b")).runOrBusy(Effect.succeed("b")), "b")
    yield* TestClock.adjust("10 seconds")
    const [first, second] = held
    assert.isTrue(Exit.isFailure(yield* Fiber.await(second ?? assert.fail("there is no second"))))
    yield* Deferred.succeed(end, undefined)
    yield* Fiber.join(first ?? assert.fail("there is no first"))
  })

  test("that does not come in time fails, and a read that has begun lasts", function* () {
    const { runOrBusy } = (yield* ReadLimiter).of(OrganizationScope.all)
    const end = yield* Deferred.make<string>()
    const begun = yield* Effect.forEach([1, 2], () => Effect.fork(runOrBusy(Deferred.await(end))))
    yield* TestClock.adjust("1 second")
    const late = yield* Effect.fork(Effect.flip(runOrBusy(Effect.void)))
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* Fiber.join(late))._tag, "GatewayBusy")
    yield* Deferred.succeed(end, "read")
    assert.deepStrictEqual(yield* Effect.forEach(begun, Fiber.join), ["read", "read"])
    assert.strictEqual(yield* runOrBusy(Effect.succeed("next")), "next")
  })

  test("is kept when its client leaves, until the database has answered", function* () {
    const { take, runOrBusy } = (yield* ReadLimiter).of(OrganizationScope.all)
    const end = yield* Deferred.make<void>()
    const reads = yield* Effect.forEach([1, 2], () => Effect.fork(take(Deferred.await(end))))
    yield* Effect.yieldNow()
    yield* Effect.forEach(reads, Fiber.interruptFork)
    const next = yield* Effect.fork(Effect.either(runOrBusy(Effect.void)))
    yield* TestClock.adjust("9 seconds")
    assert.isNull(yield* next.poll.pipe(Effect.map((done) => (done._tag === "None" ? null : done.value))))
    yield* Deferred.succeed(end, undefined)
    assert.strictEqual((yield* Fiber.join(next))._tag, "Right")
  })
})
