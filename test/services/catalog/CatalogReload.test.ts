import { Context, Effect, Fiber, Layer, Redacted, Ref, TestClock } from "effect"
import { Catalog, cachePerSnapshot } from "../../../src/services/catalog/Catalog.ts"
import { chat, edited, keys, options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"

type Given = Parameters<typeof options>[0]

/** A catalog and a function that changes what its next reload reads. */
const make = Effect.fnUntraced(function* (first: Given = { environment: keys }) {
  const given = yield* Ref.make(options(first))
  const context = yield* Layer.build(Catalog.layer(Ref.get(given)))
  return {
    catalog: Context.get(context, Catalog),
    change: (over: Given) => Ref.set(given, options({ ...first, ...over }))
  }
})

const promptPrice = (catalog: typeof Catalog.Service) => chat(catalog.current.find("talk")).pricing.prompt

const secretsOf = ({ accounts }: typeof Catalog.Service, name: string) =>
  accounts.flatMap((one) => (one.name === name && one.credential ? Redacted.value(one.credential) : []))

describe("a reload", () => {
  it.scoped("replaces models, prices and credentials together, and does not change snapshots in use", function* () {
    const { catalog, change } = yield* make()
    const before = catalog.current
    yield* change({
      text: edited("prompt_per_1m_usd: 1.5", "prompt_per_1m_usd: 3"),
      environment: { ...keys, FIRST_KEY: "new" }
    })
    const after = yield* catalog.reload
    assert.strictEqual(after, catalog.current)
    assert.strictEqual(promptPrice(catalog), 3_000_000_000n)
    assert.strictEqual(chat(before.find("talk")).pricing.prompt, 1_500_000_000n)
    assert.notStrictEqual(after.fingerprint, before.fingerprint)
    assert.deepStrictEqual(secretsOf(catalog, "first"), ["new"])
    const [route] = chat(after.find("talk")).routes
    assert.strictEqual(route?.provider.credential && Redacted.value(route.provider.credential), "new")
  })

  it.scoped("of an invalid catalog changes nothing and fails with the line", function* () {
    const { catalog, change } = yield* make()
    const before = catalog.current
    yield* change({ text: edited("per_second_usd: 0.1", "per_second_usd: cheap") })
    const { message } = yield* Effect.flip(catalog.reload)
    assert.match(message, /^catalog\.yaml:43: models\[2\]\.pricing\.per_second_usd: /)
    assert.strictEqual(catalog.current, before)
    yield* change({})
    assert.strictEqual((yield* catalog.reload).fingerprint, before.fingerprint)
  })

  it.scoped("whose file never answers times out, and the next one succeeds", function* () {
    const reads = yield* Ref.make(0)
    const read = Effect.flatMap(
      Ref.getAndUpdate(reads, (count) => count + 1),
      (count) => (count === 1 ? Effect.never : Effect.succeed(options({ environment: keys })))
    )
    const catalog = Context.get(yield* Layer.build(Catalog.layer(read)), Catalog)
    const stuck = yield* Effect.fork(Effect.uninterruptible(Effect.flip(catalog.reload)))
    yield* TestClock.adjust("5 seconds")
    const { message } = yield* Fiber.join(stuck)
    assert.strictEqual(message, "CATALOG_FILE:1: was not read within 5 seconds")
    assert.strictEqual(yield* catalog.reload, catalog.current)
  })

  it.scoped("that would leave nothing to serve is refused", function* () {
    const { catalog, change } = yield* make()
    yield* change({ environment: {} })
    const { message } = yield* Effect.flip(catalog.reload)
    assert.match(message, /^No model can be served: set a provider's credential \(FIRST_KEY, SECOND_KEY, CLIPS_KEY\)/)
    assert.lengthOf(catalog.current.models, 3)
  })

  it.scoped("that lost every credential does not serve customers from the sandbox", function* () {
    const { catalog, change } = yield* make({ environment: keys, sandbox: "when-no-credential" })
    yield* change({ environment: {} })
    const { message } = yield* Effect.flip(catalog.reload)
    assert.match(message, /^No provider has a credential any more \(FIRST_KEY, /)
    assert.isFalse(catalog.current.sandbox)
  })

  it.scoped("switches from the sandbox to the providers once they have credentials", function* () {
    const { catalog, change } = yield* make({ sandbox: "when-no-credential" })
    assert.isTrue((yield* catalog.reload).sandbox)
    yield* change({ environment: keys })
    assert.isFalse((yield* catalog.reload).sandbox)
  })

  it.scoped("keeps an account without its credential for unfinished videos, until it has one again", function* () {
    const { catalog, change } = yield* make()
    yield* change({ environment: { FIRST_KEY: "k1" } })
    yield* catalog.reload
    assert.isUndefined(catalog.current.find("film"))
    assert.deepStrictEqual(secretsOf(catalog, "clips"), ["k3"])
    yield* change({ environment: { ...keys, CLIPS_KEY: "k4" } })
    yield* catalog.reload
    assert.deepStrictEqual(secretsOf(catalog, "clips"), ["k4"])
  })
})

it.scoped("what is derived from a catalog is computed once for each snapshot", function* () {
  const { catalog } = yield* make()
  let times = 0
  const count = cachePerSnapshot(catalog, ({ models }) => [models.length, ++times])
  assert.deepStrictEqual(yield* Effect.zip(count, count), [
    [3, 1],
    [3, 1]
  ])
  yield* catalog.reload
  assert.deepStrictEqual(yield* count, [3, 2])
})
