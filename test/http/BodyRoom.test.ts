import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, TestClock } from "effect"
import { OrgId } from "../../src/domain/Organization.ts"
import { BodyRoom } from "../../src/http/BodyRoom.ts"

const mib = 1024 * 1024
const [one, two, three] = [OrgId.make("one"), OrgId.make("two"), OrgId.make("three")]

const settled = TestClock.adjust("1 millis")

describe("large bodies", () => {
  /** Bodies that stay until they are let go, and who is in, in the order they came in. */
  const arranged = Effect.sync(() => {
    const room = new BodyRoom()
    const entered: Array<string> = []
    const body = Effect.fnUntraced(function* (name: string, org: OrgId, size: number) {
      const over = yield* Deferred.make<void>()
      const work = Effect.zipRight(
        Effect.sync(() => entered.push(name)),
        Deferred.await(over)
      )
      const { enter, leave } = room.guest(org)
      const fiber = yield* Effect.fork(Effect.ensuring(Effect.zipRight(enter(size * mib), work), leave))
      yield* settled
      return { fiber, end: Effect.zipRight(Deferred.succeed(over, undefined), Fiber.join(fiber)) }
    })
    return { body, entered }
  })

  it.effect("of one organization leave room for those of others", () =>
    Effect.gen(function* () {
      const { body, entered } = yield* arranged
      const first = yield* body("a", one, 200)
      yield* body("b", one, 57)
      yield* body("c", two, 256)
      yield* body("d", one, 56)
      assert.deepStrictEqual(entered, ["a", "c", "d"])
      yield* first.end
      yield* settled
      assert.deepStrictEqual(entered, ["a", "c", "d", "b"])
    })
  )

  it.effect("wait in order: a small one does not overtake what is waited for", () =>
    Effect.gen(function* () {
      const { body, entered } = yield* arranged
      const first = yield* body("a", one, 256)
      yield* body("b", two, 200)
      yield* body("c", three, 100)
      yield* body("d", two, 10)
      assert.deepStrictEqual(entered, ["a", "b"])
      yield* first.end
      yield* settled
      assert.deepStrictEqual(entered, ["a", "b", "c", "d"])
    })
  )

  it.effect("that find no room in time are too many, and leave none taken", () =>
    Effect.gen(function* () {
      const { body, entered } = yield* arranged
      const first = yield* body("a", one, 256)
      const late = yield* body("b", one, 48)
      const gone = yield* body("c", one, 48)
      yield* Fiber.interrupt(gone.fiber)
      yield* TestClock.adjust("19990 millis")
      assert.isNull(late.fiber.unsafePoll())
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(Fiber.join(late.fiber)))._tag, "RateLimited")
      yield* first.end
      const cut = yield* body("d", one, 256)
      yield* Fiber.interrupt(cut.fiber)
      yield* body("e", one, 256)
      yield* body("f", two, 256)
      assert.deepStrictEqual(entered, ["a", "d", "e", "f"])
    })
  )

  it.effect("do not hold up small ones", () =>
    Effect.gen(function* () {
      const { body, entered } = yield* arranged
      yield* body("a", one, 256)
      yield* body("b", two, 256)
      yield* body("c", one, 1)
      assert.deepStrictEqual(entered, ["a", "b", "c"])
    })
  )
})
