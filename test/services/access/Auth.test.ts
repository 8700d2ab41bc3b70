import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, Option, Redacted } from "effect"
import { mayUseModel } from "../../../src/domain/ApiKey.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { Auth } from "../../../src/services/access/Auth.ts"
import { BlockList, parseRange } from "../../../src/services/access/BlockList.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const services = Layer.mergeAll(ApiKeys.layer, BlockList.layer, Organizations.layer).pipe(
  Layer.provideMerge(LedgerAdmin.layer),
  Layer.provideMerge(Postgres.layer)
)

/** Whose time stands still until the test moves it. */
const setup = Effect.gen(function* () {
  const real = yield* Effect.clock
  let millis = 1_000
  const nanos = () => BigInt(millis) * 1_000_000n
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis: () => millis,
    unsafeCurrentTimeNanos: nanos,
    currentTimeMillis: Effect.sync(() => millis),
    currentTimeNanos: Effect.sync(nanos),
    sleep: (duration) => real.sleep(duration)
  }
  const build = Effect.map(Layer.build(Layer.fresh(Auth.layer)).pipe(Effect.withClock(clock)), Context.get(Auth))
  const [auth, ofAnother] = [yield* build, yield* build]
  const keys = yield* ApiKeys
  const { id: org } = yield* Effect.flatMap(Organizations, ({ create }) => create({ name: randomUUID() }))
  const issue = (expires_at?: Date) => keys.create({ org, expires_at })
  const recall = (secret: Redacted.Redacted) => auth.findCached(Redacted.value(secret))
  const authenticate = (secret: Redacted.Redacted) => auth.authenticate(Option.some(secret))
  /** By two gateways, which know nothing of each other. */
  const byBoth = (secret: Redacted.Redacted) =>
    Effect.forEach([auth, ofAnother], (one) => one.authenticate(Option.some(secret)))
  return { auth, authenticate, byBoth, issue, keys, recall, wait: (more: number) => (millis += more) }
})

withLayer(services)("a caller", (it) => {
  it.scoped("is found in the cache as authenticated, while the cache is fresh", function* () {
    const { authenticate, issue, recall, wait } = yield* setup
    const { secret } = yield* issue()
    assert.isUndefined(recall(secret))
    const caller = yield* authenticate(secret)
    assert.strictEqual(recall(secret), caller)
    assert.isUndefined(recall(Redacted.make(`${Redacted.value(secret)}x`)))
    assert.isUndefined(recall(Redacted.make("")))
    wait(899)
    assert.strictEqual(recall(secret), caller)
    wait(1)
    assert.isUndefined(recall(secret))
    assert.deepStrictEqual(yield* authenticate(secret), caller)
    assert.isDefined(recall(secret))
  })

  it.scoped("is not found in the cache after its key is revoked or has expired", function* () {
    const { authenticate, issue, keys, recall, wait } = yield* setup
    const [revoked, expiring, lasting] = [
      yield* issue(),
      yield* issue(new Date(Date.now() + 3_600_000)),
      yield* issue()
    ]
    yield* authenticate(revoked.secret)
    yield* keys.revoke(OrganizationScope.all, revoked.record.id)
    wait(900)
    yield* Effect.flip(authenticate(revoked.secret))
    assert.isUndefined(recall(revoked.secret))
    for (const { secret } of [expiring, lasting]) yield* authenticate(secret)
    assert.isDefined(recall(expiring.secret))
    wait(3_600_000)
    // By now the memory is fresh again, and knows both.
    yield* authenticate(lasting.secret)
    assert.isDefined(recall(lasting.secret))
    assert.isUndefined(recall(expiring.secret))
    yield* Effect.flip(authenticate(expiring.secret))
  })

  it.scoped("may use what its key's list says, on each gateway within a second of its change", function* () {
    const { byBoth, issue, keys, wait } = yield* setup
    const { record, secret } = yield* issue()
    const judged = Effect.map(byBoth(secret), (callers) =>
      callers.map((caller) => ["claude-1", "gpt-1"].map((id) => mayUseModel(caller, id)))
    )
    assert.deepStrictEqual(yield* judged, [
      [true, true],
      [true, true]
    ])
    yield* keys.update(OrganizationScope.all, record.id, { models: ["claude-*"] })
    wait(900)
    assert.deepStrictEqual(yield* judged, [
      [true, false],
      [true, false]
    ])
    yield* keys.update(OrganizationScope.all, record.id, { models: null })
    wait(900)
    assert.deepStrictEqual(yield* judged, [
      [true, true],
      [true, true]
    ])
  })

  it.scoped("is authenticated by the previous secret during the grace of a reissue, and not longer", function* () {
    const { byBoth, issue, keys, recall, wait } = yield* setup
    const first = yield* issue()
    const [known] = yield* byBoth(first.secret)
    const second = yield* keys.reissue(OrganizationScope.all, first.record.id, 3_600)
    wait(900)
    for (const secret of [first.secret, second.secret]) {
      for (const caller of yield* byBoth(secret)) assert.deepStrictEqual(caller, known)
    }
    wait(3_590_000)
    yield* byBoth(first.secret)
    assert.isDefined(recall(first.secret))
    wait(10_000)
    yield* byBoth(second.secret)
    assert.isUndefined(recall(first.secret))
    yield* Effect.flip(byBoth(first.secret))
  })

  it.scoped("is authenticated by the previous secret no longer than its key is valid", function* () {
    const { byBoth, issue, keys, recall, wait } = yield* setup
    const { record, secret } = yield* issue(new Date(Date.now() + 60_000))
    yield* keys.reissue(OrganizationScope.all, record.id, 3_600)
    yield* byBoth(secret)
    assert.isDefined(recall(secret))
    wait(60_000)
    yield* Effect.flip(byBoth(secret))
  })

  it.scoped("is authenticated by at most one previous secret, and by none after a revocation", function* () {
    const { byBoth, issue, keys, wait } = yield* setup
    const secrets = [(yield* issue()).secret]
    const { record } = yield* issue()
    secrets.push((yield* keys.reissue(OrganizationScope.all, record.id, 3_600)).secret)
    secrets.push((yield* keys.reissue(OrganizationScope.all, record.id, 3_600)).secret)
    const [other, second, third] = secrets
    if (other === undefined || second === undefined || third === undefined) return assert.fail()
    const callers = yield* Effect.all([byBoth(second), byBoth(third)], { concurrency: "unbounded" })
    for (const { key } of callers.flat()) assert.strictEqual(key, record.id)
    const fourth = (yield* keys.reissue(OrganizationScope.all, record.id)).secret
    wait(900)
    for (const secret of [second, third]) yield* Effect.flip(byBoth(secret))
    yield* byBoth(fourth)
    const fifth = (yield* keys.reissue(OrganizationScope.all, record.id, 3_600)).secret
    wait(900)
    for (const secret of [fourth, fifth]) yield* byBoth(secret)
    yield* keys.revoke(OrganizationScope.all, record.id)
    wait(900)
    for (const secret of [fourth, fifth]) yield* Effect.flip(byBoth(secret))
    yield* byBoth(other)
  })

  it.scoped("is not found in the cache while any address is blocked, which is checked first", function* () {
    const { auth, authenticate, issue, recall } = yield* setup
    const { secret } = yield* issue()
    const range = parseRange("203.0.113.0/24") ?? assert.fail()
    yield* Effect.flatMap(BlockList, ({ add }) => add(range))
    yield* authenticate(secret)
    assert.isTrue(yield* auth.isBlocked("203.0.113.9"))
    assert.isUndefined(recall(secret))
    yield* Effect.flatMap(BlockList, ({ remove }) => remove(range))
  })
})
