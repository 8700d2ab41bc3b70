import { Deferred, Effect, Fiber } from "effect"
import { makeBoundedKeyedSemaphore } from "../../../src/services/runtime/KeyedSemaphore.ts"
import { assert, describe, it } from "../../harness/It.ts"

const prepared = Effect.gen(function* () {
  const turns = makeBoundedKeyedSemaphore(2, 3)
  const gate = yield* Deferred.make<void>()
  const begun: Array<string> = []
  const run = (key: string, name: string) =>
    turns(key)(
      Effect.zipRight(
        Effect.sync(() => begun.push(name)),
        Deferred.await(gate)
      )
    )
  const start = (key: string, ...names: ReadonlyArray<string>) =>
    Effect.forEach(names, (name) => Effect.zipLeft(Effect.fork(run(key, name)), Effect.yieldNow()))
  return { begun, open: Deferred.succeed(gate, undefined), run, start }
})

describe("the permits of a key", () => {
  it.effect("limit concurrent runs, and start the others in order of arrival", function* () {
    const { begun, open, start } = yield* prepared
    const fibers = yield* start("a", "1", "2", "3", "4")
    assert.deepStrictEqual(begun, ["1", "2"])
    yield* open
    yield* Fiber.joinAll(fibers)
    assert.deepStrictEqual(begun, ["1", "2", "3", "4"])
  })

  it.effect("leave those of other keys alone", function* () {
    const { begun, start } = yield* prepared
    yield* start("a", "1", "2", "3")
    yield* start("b", "4")
    assert.deepStrictEqual(begun, ["1", "2", "4"])
  })

  it.effect("fail at once if too many wait, until one has finished", function* () {
    const { begun, open, run, start } = yield* prepared
    const [, , third] = yield* start("a", "1", "2", "3", "4", "5")
    assert.strictEqual((yield* Effect.flip(run("a", "6")))._tag, "GatewayBusy")
    if (third !== undefined) yield* Fiber.interrupt(third)
    const [seventh] = yield* start("a", "7")
    yield* open
    if (seventh !== undefined) yield* Fiber.join(seventh)
    assert.deepStrictEqual(begun, ["1", "2", "4", "5", "7"])
  })
})
