import { SqlError } from "@effect/sql/SqlError"
import { Deferred, Effect, Exit, Fiber, Ref, Scope, TestClock } from "effect"
import * as EventLoop from "../../../src/services/runtime/EventLoop.ts"
import { NoAnswer, NotSent } from "../../../src/services/sql/Outage.ts"
import * as StatementBatcher from "../../../src/services/sql/StatementBatcher.ts"
import { assert, describe, it } from "../../harness/It.ts"

/** Batches of numbers that wait for a gate; what ran is in `ran`. */
const gated = Effect.fnUntraced(function* (fails: (items: ReadonlyArray<number>) => boolean = () => false) {
  const gate = yield* Deferred.make<void>()
  const ran = yield* Ref.make<ReadonlyArray<ReadonlyArray<number>>>([])
  const submit = yield* StatementBatcher.make({
    maxSize: 3,
    timeout: "10 seconds",
    run: (items: ReadonlyArray<number>) =>
      Ref.update(ran, (before) => [...before, items]).pipe(
        Effect.zipRight(Deferred.await(gate)),
        Effect.zipRight(Effect.suspend(() => (fails(items) ? Effect.fail("bad" as const) : Effect.succeed(items))))
      )
  })
  const ask = (item: number) => Effect.fork(Effect.exit(submit(item)))
  /** Asks once a batch of all that came before can have begun. */
  const askLater = (item: number) => Effect.zipRight(Effect.repeatN(EventLoop.yieldTurn, 2), ask(item))
  return { gate, ran, ask, askLater }
})

describe("natural batches", () => {
  it.scoped("take the items queued during the last batch, and return each its result", function* () {
    const { askLater, gate, ran } = yield* gated()
    const asked = yield* Effect.forEach([1, 2, 3, 4, 5], askLater)
    yield* Deferred.succeed(gate, undefined)
    assert.deepStrictEqual(
      yield* Fiber.join(Fiber.all(asked)),
      [1, 2, 3, 4, 5].map((item) => Exit.succeed(item))
    )
    assert.deepStrictEqual(yield* Ref.get(ran), [[1], [2, 3, 4], [5]])
  })

  it.scoped("take the items that arrived together, even without a running batch", function* () {
    const { ask, gate, ran } = yield* gated()
    const asked = yield* Effect.forEach([1, 2, 3, 4], ask)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(Fiber.all(asked))
    assert.deepStrictEqual(yield* Ref.get(ran), [[1, 2, 3], [4]])
  })

  it.scoped("that fail are run again one by one, so that a bad item fails alone", function* () {
    const { ask, gate } = yield* gated((items) => items.includes(3))
    const asked = yield* Effect.forEach([1, 2, 3, 4], ask)
    yield* Deferred.succeed(gate, undefined)
    assert.deepStrictEqual(yield* Fiber.join(Fiber.all(asked)), [
      Exit.succeed(1),
      Exit.succeed(2),
      Exit.fail("bad" as const),
      Exit.succeed(4)
    ])
  })

  it.scoped("time out each caller, and skip items that timed out", function* () {
    const { askLater, gate, ran } = yield* gated()
    const early = yield* Effect.forEach([1, 2, 3, 4], (item) =>
      Effect.zipLeft(askLater(item), TestClock.adjust("1 second"))
    )
    yield* TestClock.adjust("5 seconds")
    const late = yield* askLater(5)
    assert.isNull(early[3]?.unsafePoll())
    yield* TestClock.adjust("5 seconds")
    assert.deepStrictEqual(
      yield* Fiber.join(Fiber.all(early)),
      [new NoAnswer(), new NoAnswer(), new NoAnswer(), new NotSent()].map(Exit.fail)
    )
    assert.isNull(late.unsafePoll())
    yield* Deferred.succeed(gate, undefined)
    assert.deepStrictEqual(yield* Fiber.join(late), Exit.succeed(5))
    assert.deepStrictEqual(yield* Ref.get(ran), [[1], [2], [3], [5]])
  })

  it.scoped("start beside one that is not answered, two at the most", function* () {
    const { ask, askLater, gate, ran } = yield* gated()
    yield* ask(1)
    yield* askLater(2)
    yield* TestClock.adjust("250 millis")
    assert.deepStrictEqual(yield* Ref.get(ran), [[1]])
    yield* TestClock.adjust("250 millis")
    yield* Effect.repeatN(EventLoop.yieldTurn, 2)
    assert.deepStrictEqual(yield* Ref.get(ran), [[1], [2]])
    for (const item of [3, 4]) {
      yield* askLater(item)
      yield* TestClock.adjust("1 second")
    }
    yield* Effect.repeatN(EventLoop.yieldTurn, 2)
    assert.deepStrictEqual(yield* Ref.get(ran), [[1], [2], [3]])
    yield* Deferred.succeed(gate, undefined)
  })
})

const gone = new SqlError({ cause: new Error("connection lost"), message: "connection lost" })
const blocked = new SqlError({ cause: { severity: "ERROR", code: "55P03" }, message: "lock timeout" })

/** Batches of words whose lane is their first letter; a run waits for nothing and fails with what `failure` says. */
const laned = Effect.fnUntraced(function* (failure: (items: ReadonlyArray<string>) => SqlError | undefined) {
  const ran: Array<ReadonlyArray<string>> = []
  const submit = yield* StatementBatcher.make({
    maxSize: 10,
    timeout: "10 seconds",
    lockGroups: { groupOf: (item: string) => item.slice(0, 1), permits: yield* Effect.makeSemaphore(1) },
    run: (items: ReadonlyArray<string>) =>
      Effect.suspend(() => {
        ran.push(items)
        const failed = failure(items)
        // A lock is waited for in real time, and the waiting lets others go on.
        return failed === undefined ? Effect.succeed(items) : Effect.zipRight(EventLoop.yieldTurn, Effect.fail(failed))
      })
  })
  const ask = (item: string) => Effect.fork(Effect.exit(submit(item)))
  return { ran, ask, submit }
})

describe("natural batches with lock groups", () => {
  it.scoped("go on without those whose lock is taken, and with them once it is free", function* () {
    let isLocked = true
    const { ask, ran, submit } = yield* laned((items) =>
      isLocked && items.some((item) => item.startsWith("a")) ? blocked : undefined
    )
    const first = yield* Effect.forEach(["a1", "b1", "a2", "c1"], ask)
    for (const fiber of [first[1], first[3]]) yield* fiber ?? Effect.void
    const later = yield* ask("a3")
    assert.deepStrictEqual(yield* submit("b2"), "b2")
    assert.deepStrictEqual(ran.at(0), ["a1", "b1", "a2", "c1"])
    assert.isFalse(ran.slice(1).some((items) => items.includes("b2") && items.length > 1))
    assert.deepStrictEqual([first[0]?.unsafePoll(), first[2]?.unsafePoll(), later.unsafePoll()], [null, null, null])
    isLocked = false
    assert.deepStrictEqual(yield* Fiber.join(later), Exit.succeed("a3"))
    assert.deepStrictEqual(yield* Fiber.join(Fiber.all(first)), ["a1", "b1", "a2", "c1"].map(Exit.succeed))
    yield* Effect.repeatN(EventLoop.yieldTurn, 5)
    yield* Fiber.join(Fiber.all(yield* Effect.forEach(["a4", "b4"], ask)))
    assert.deepStrictEqual(ran.at(-1), ["a4", "b4"], "the lane is closed again")
  })

  it.scoped("fail an item whose lock is never free as not run", function* () {
    const { ask } = yield* laned(() => blocked)
    const asked = yield* ask("a1")
    yield* Effect.repeatN(EventLoop.yieldTurn, 10)
    for (let quarter = 0; quarter < 42; quarter += 1) {
      yield* TestClock.adjust("250 millis")
      yield* Effect.repeatN(EventLoop.yieldTurn, 3)
    }
    assert.deepStrictEqual(yield* Fiber.join(asked), Exit.fail(new NotSent()))
  })

  it.effect("end with their scope, though a lock is never free", function* () {
    const scope = yield* Scope.make()
    const { ask } = yield* Scope.extend(
      laned(() => blocked),
      scope
    )
    yield* Effect.forEach(["a1", "b1"], ask)
    yield* Effect.repeatN(EventLoop.yieldTurn, 10)
    yield* Scope.close(scope, Exit.void)
  })

  it.effect("end with their scope, wherever their making is interrupted", function* () {
    // A fiber leaves its turn to others after 2,048 operations, here in the midst of the making.
    for (let operations = 1_980; operations < 2_050; operations += 1) {
      let left = operations
      const pad = Effect.whileLoop({ while: () => left-- > 0, body: () => Effect.void, step: () => {} })
      const options = {
        maxSize: 1,
        timeout: "1 second",
        run: (items: ReadonlyArray<number>) => Effect.succeed(items)
      } as const
      const making = yield* Effect.fork(Effect.scoped(Effect.zipRight(pad, StatementBatcher.make(options))))
      yield* Effect.yieldNow()
      making.unsafeInterruptAsFork(making.id())
      yield* Fiber.await(making)
    }
  })

  it.scoped("are repeated once as they are after a failure that no single one caused", function* () {
    let failures = 1
    const { ask, ran } = yield* laned(() => (failures-- > 0 ? gone : undefined))
    const asked = yield* Effect.forEach(["a1", "b1", "c1"], ask)
    assert.deepStrictEqual(yield* Fiber.join(Fiber.all(asked)), ["a1", "b1", "c1"].map(Exit.succeed))
    assert.deepStrictEqual(ran, [
      ["a1", "b1", "c1"],
      ["a1", "b1", "c1"]
    ])
    failures = 2
    const again = yield* Effect.forEach(["a2", "b2"], ask)
    assert.deepStrictEqual(yield* Fiber.join(Fiber.all(again)), [Exit.fail(gone), Exit.fail(gone)])
    assert.lengthOf(ran, 4)
  })
})
