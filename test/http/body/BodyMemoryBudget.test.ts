import { Deferred, Effect, Fiber, TestClock } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { BodyMemoryBudget } from "../../../src/http/body/BodyMemoryBudget.ts"
import { assert, describe, it } from "../../harness/It.ts"

const mib = 1024 * 1024
const [one, two, three, four] = [OrgId.make("one"), OrgId.make("two"), OrgId.make("three"), OrgId.make("four")]

const settled = TestClock.adjust("1 millis")

describe("the memory for bodies", () => {
  /** Bodies that are kept until they are let go, and the names of those that got their memory, in that order. */
  const arranged = Effect.sync(() => {
    const budget = new BodyMemoryBudget()
    const admitted: Array<string> = []
    const body = Effect.fnUntraced(function* (name: string, org: OrgId, size: number) {
      const over = yield* Deferred.make<void>()
      const memory = budget.memory(org)
      const work = Effect.gen(function* () {
        yield* memory.reserve(size * mib)
        admitted.push(name)
        yield* Deferred.await(over)
      })
      const fiber = yield* Effect.fork(
        Effect.ensuring(
          work,
          Effect.sync(() => memory.shrink(0))
        )
      )
      yield* settled
      const end = Effect.zipRight(Deferred.succeed(over, undefined), Fiber.join(fiber))
      return { fiber, memory, end: Effect.zipLeft(end, settled) }
    })
    return { body, admitted, budget }
  })

  it.effect("is reserved for an organization while it holds no more than is left for others", function* () {
    const { admitted, body } = yield* arranged
    const first = yield* body("a", one, 200)
    yield* body("b", one, 120)
    yield* body("c", two, 200)
    yield* body("d", one, 10)
    assert.deepStrictEqual(admitted, ["a", "c"])
    yield* first.end
    assert.deepStrictEqual(admitted, ["a", "c", "b", "d"])
  })

  it.effect("has some left for a new organization when many others reserve all they can", function* () {
    const { budget } = yield* arranged
    for (let org = 0; org < 8; org++) {
      const greedy = OrgId.make(`greedy-${org}`)
      assert.isTrue(budget.memory(greedy).tryReserve(mib))
      while (budget.memory(greedy).tryReserve(mib));
    }
    assert.isTrue(budget.memory(one).tryReserve(mib))
  })

  it.effect("is reserved in the order of the requests", function* () {
    const { admitted, body } = yield* arranged
    const first = yield* body("a", one, 256)
    yield* body("b", two, 100)
    yield* body("c", three, 200)
    yield* body("d", four, 100)
    assert.deepStrictEqual(admitted, ["a", "b"])
    yield* first.end
    assert.deepStrictEqual(admitted, ["a", "b", "c", "d"])
  })

  it.effect("is waited for at most 20 seconds, after which nothing is reserved", function* () {
    const { admitted, body } = yield* arranged
    const first = yield* body("a", one, 256)
    const late = yield* body("b", one, 48)
    const gone = yield* body("c", one, 48)
    yield* Fiber.interrupt(gone.fiber)
    yield* TestClock.adjust("19990 millis")
    assert.isNull(late.fiber.unsafePoll())
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Effect.flip(Fiber.join(late.fiber)))._tag, "GatewayBusy")
    yield* first.end
    const cut = yield* body("d", one, 256)
    yield* Fiber.interrupt(cut.fiber)
    yield* body("e", one, 256)
    yield* body("f", two, 256)
    assert.deepStrictEqual(admitted, ["a", "d", "e", "f"])
  })

  it.effect("counts at most half of the budget for one body, which may be larger", function* () {
    const { admitted, body } = yield* arranged
    const { end } = yield* body("a", one, 1024)
    yield* body("b", two, 200)
    assert.deepStrictEqual(admitted, ["a", "b"])
    yield* end
  })

  it.effect("that is released goes to a waiting body", function* () {
    const { admitted, body } = yield* arranged
    const first = yield* body("a", one, 256)
    yield* body("b", one, 48)
    assert.deepStrictEqual(admitted, ["a"])
    first.memory.shrink(mib)
    yield* settled
    assert.deepStrictEqual(admitted, ["a", "b"])
    assert.strictEqual(first.memory.reserved, mib)
  })
})
