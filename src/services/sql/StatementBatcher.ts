import { Array as Arr, Cause, Duration, Effect, Exit, Option, type Scope } from "effect"
import * as Metrics from "../metrics/Metrics.ts"
import * as EventLoop from "../runtime/EventLoop.ts"
import { isLockTimeout, isOutage, NoAnswer, NotSent } from "./Outage.ts"

const tickMillis = 250
const graceTicks = 2
/**
 * Normally one batch runs at a time, because that makes batches larger. If it is not done after this many ticks, another
 * may start.
 */
const slowTicks = 2
const maxAtOnce = 3

/** Items of the same group wait for the same lock. */
export interface LockGroups<Item> {
  readonly groupOf: (item: Item) => string
  readonly permits: Effect.Semaphore
}

interface Options<Item, Result, E, R> {
  /** The label of its metrics; absent: none. */
  readonly name?: string
  readonly maxSize: number
  /** Returns one result per item, in the same order. Must be idempotent, because failed batches are repeated. */
  readonly run: (items: Arr.NonEmptyReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Result>, E, R>
  /** Rounded to 250 ms. */
  readonly timeout: Duration.DurationInput
  readonly lockGroups?: LockGroups<Item> | undefined
}

type Outcome<Result, E> = Exit.Exit<Result, E | NoAnswer | NotSent>

/** An item whose submitter waits. */
interface Pending<Item, Result, E> {
  readonly item: Item
  readonly resume: (outcome: Outcome<Result, E>) => void
  /** The tick at which it was submitted. */
  readonly since: number
  isRunning: boolean
  /** A batch with the item has failed, but the item may have taken effect. */
  hasFailed: boolean
}

/**
 * Returns a function that runs an item in a batch with others. A request costs PostgreSQL 1 ms of CPU in a batch of its own,
 * and 0.17 ms in one of 32. Items are collected while a batch runs. A failed batch is repeated once: item by item, or as a
 * whole in an outage. After a lock timeout its items run again by lock group. An item also runs if its submitter is
 * interrupted. On a timeout the function fails with `NotSent`, or with `NoAnswer` if the item may have run.
 */
export const make = <Item, Result, E, R>(
  options: Options<Item, Result, E, R>
): Effect.Effect<(item: Item) => Effect.Effect<Result, E | NoAnswer | NotSent>, never, R | Scope.Scope> =>
  Effect.gen(function* () {
    const batcher = new Batcher(options, yield* Effect.scope)
    // Uninterruptible, because without the finalizer the workers would never end.
    yield* Effect.replicateEffect(Effect.forkScoped(batcher.worker), maxAtOnce, { discard: true }).pipe(
      Effect.zipRight(Effect.addFinalizer(() => Effect.sync(() => batcher.close()))),
      Effect.uninterruptible
    )
    const tick = Effect.sync(() => batcher.tick())
    yield* Effect.zipRight(Effect.sleep(tickMillis), tick).pipe(Effect.forever, Effect.forkScoped)
    return (item) => batcher.submit(item)
  })

const failsWith = (cause: Cause.Cause<unknown>, is: (error: unknown) => boolean) =>
  Option.exists(Cause.failureOption(cause), is)

class Batcher<Item, Result, E, R> {
  readonly #options: Options<Item, Result, E, R>
  readonly #scope: Scope.Scope
  readonly #timeoutTicks: number
  #queue: Array<Pending<Item, Result, E>> = []
  /** The callbacks of workers that wait for a batch. */
  readonly #idle: Array<(batch: ReadonlyArray<Pending<Item, Result, E>>) => void> = []
  /** The batch that started last, while it runs. */
  #newestBatch: { readonly since: number } | undefined
  #isGathering = false
  #isClosed = false
  /** All items whose submitters wait. */
  readonly #waiting = new Set<Pending<Item, Result, E>>()
  /** Items whose lock group timed out on its lock, by group. They run apart from the queue. */
  readonly #blocked = new Map<string, Array<Pending<Item, Result, E>>>()
  /** The clock of all timeouts, because a timer per item would cost more than batching saves. */
  #ticks = 0

  constructor(options: Options<Item, Result, E, R>, scope: Scope.Scope) {
    this.#options = options
    this.#scope = scope
    this.#timeoutTicks = Duration.toMillis(options.timeout) / tickMillis
  }

  submit(item: Item): Effect.Effect<Result, E | NoAnswer | NotSent> {
    return Effect.async((resume) => {
      const pending = { item, resume, since: this.#ticks, isRunning: false, hasFailed: false }
      this.#waiting.add(pending)
      this.#queue.push(pending)
      this.#gather()
    })
  }

  tick(): void {
    this.#ticks += 1
    this.#failLate(this.#waiting)
    this.#gather()
  }

  close(): void {
    this.#isClosed = true
    for (const end of this.#idle) end([])
  }

  /** Runs batches until the batcher is closed. */
  readonly worker: Effect.Effect<void, never, R> = Effect.suspend(() => {
    const own = { since: 0 }
    const runBatch = (batch: ReadonlyArray<Pending<Item, Result, E>>) => {
      own.since = this.#ticks
      this.#newestBatch = own
      return this.#run(this.#withoutBlocked(batch), false, (blocked) => this.#splitByGroup(blocked))
    }
    const runNext = Effect.async<void, never, R>((resume) => {
      this.#idle.push((batch) => resume(Effect.suspend(() => runBatch(batch))))
      this.#gather()
    })
    return Effect.whileLoop({
      while: () => !this.#isClosed,
      body: () => runNext,
      step: () => {
        if (this.#newestBatch === own) this.#newestBatch = undefined
      }
    })
  })

  /**
   * Starts a batch of the queue on an idle worker. Waits instead while a recently started batch runs, so the next one gets
   * larger.
   */
  #gather(): void {
    if (this.#isGathering || this.#queue.length === 0 || this.#idle.length === 0) return
    if (this.#newestBatch !== undefined && this.#ticks - this.#newestBatch.since < slowTicks) return
    this.#isGathering = true
    setImmediate(() => {
      this.#isGathering = false
      this.#idle.shift()?.(this.#takeBatch())
    })
  }

  #takeBatch(): ReadonlyArray<Pending<Item, Result, E>> {
    const { maxSize } = this.#options
    if (this.#queue.length > maxSize) return this.#queue.splice(0, maxSize)
    const batch = this.#queue
    this.#queue = []
    return batch
  }

  /** Runs those items of the batch that have not timed out. */
  #run(
    batch: ReadonlyArray<Pending<Item, Result, E>>,
    isRepeated: boolean,
    onBlocked: (batch: ReadonlyArray<Pending<Item, Result, E>>) => Effect.Effect<void, never, R>
  ): Effect.Effect<void, never, R> {
    const waitingItems = batch.filter((pending) => this.#waiting.has(pending))
    if (!Arr.isNonEmptyArray(waitingItems)) return Effect.void
    for (const pending of waitingItems) pending.isRunning = true
    const startedAt = performance.now()
    return Effect.matchCauseEffect(
      Effect.suspend(() => this.#options.run(Arr.map(waitingItems, ({ item }) => item))),
      {
        onSuccess: (results) => {
          this.#measure(waitingItems, startedAt)
          this.#resumeAll(waitingItems, results)
          return Effect.void
        },
        onFailure: (cause): Effect.Effect<void, never, R> => {
          this.#measure(waitingItems, startedAt)
          for (const pending of waitingItems) pending.isRunning = false
          if (this.#options.lockGroups !== undefined && failsWith(cause, isLockTimeout)) return onBlocked(waitingItems)
          for (const pending of waitingItems) pending.hasFailed = true
          const isShared = failsWith(cause, isOutage)
          if (isRepeated || (waitingItems.length === 1 && !isShared)) {
            for (const pending of waitingItems) this.#end(pending, Exit.failCause(cause))
            return Effect.void
          }
          if (isShared) return this.#run(waitingItems, true, onBlocked)
          return Effect.forEach(waitingItems, (pending) => this.#run([pending], true, onBlocked), { discard: true })
        }
      }
    )
  }

  #resumeAll(batch: ReadonlyArray<Pending<Item, Result, E>>, results: ReadonlyArray<Result>): void {
    batch.forEach((pending, index) => {
      const result = results[index]
      this.#end(
        pending,
        result === undefined ? Exit.die(new Error("a batch returned no result for an item")) : Exit.succeed(result)
      )
    })
  }

  #end(pending: Pending<Item, Result, E>, outcome: Outcome<Result, E>): void {
    if (this.#waiting.delete(pending)) pending.resume(outcome)
  }

  #failLate(candidates: Iterable<Pending<Item, Result, E>>): void {
    for (const pending of candidates) {
      if (this.#ticks - pending.since <= this.#timeoutTicks + (pending.isRunning ? graceTicks : 0)) continue
      this.#end(pending, Exit.fail(pending.isRunning || pending.hasFailed ? new NoAnswer() : new NotSent()))
    }
  }

  #measure(batch: ReadonlyArray<unknown>, startedAt: number): void {
    const { name } = this.#options
    if (name === undefined) return
    Metrics.unsafeUpdate(Metrics.statementSeconds, (performance.now() - startedAt) / 1000, { statement: name })
    Metrics.unsafeUpdate(Metrics.batchSize, batch.length, { statement: name })
  }

  /** Moves the items of blocked lock groups to their group's queue, and returns the rest. */
  #withoutBlocked(batch: ReadonlyArray<Pending<Item, Result, E>>): ReadonlyArray<Pending<Item, Result, E>> {
    const { lockGroups } = this.#options
    return this.#blocked.size === 0 || lockGroups === undefined
      ? batch
      : batch.filter((pending) => this.#blocked.get(lockGroups.groupOf(pending.item))?.push(pending) === undefined)
  }

  #splitByGroup(batch: ReadonlyArray<Pending<Item, Result, E>>): Effect.Effect<void, never, R> {
    return Effect.suspend(() => {
      const { lockGroups } = this.#options
      if (lockGroups === undefined) return Effect.void
      const groups = Arr.groupBy(this.#withoutBlocked(batch), ({ item }) => lockGroups.groupOf(item))
      return Effect.forEach(
        Object.entries(groups),
        ([group, items]) => {
          const waiting = [...items]
          this.#blocked.set(group, waiting)
          return this.#runGroup(group, waiting, lockGroups.permits)
        },
        { discard: true }
      )
    })
  }

  #runGroup(group: string, items: Array<Pending<Item, Result, E>>, permits: Effect.Semaphore) {
    const attempt = Effect.suspend(() => {
      this.#failLate(items)
      const batch = items.splice(0, this.#options.maxSize)
      return this.#run(batch, false, (again) => Effect.sync(() => items.unshift(...again)))
    })
    return attempt.pipe(
      Effect.uninterruptible,
      permits.withPermits(1),
      // Other groups get the permit before this one runs again.
      Effect.zipRight(EventLoop.yieldTurn),
      Effect.map(() => items.length === 0 && this.#blocked.delete(group)),
      Effect.repeat({ until: (isDone) => isDone }),
      Effect.interruptible,
      Effect.forkIn(this.#scope)
    )
  }
}
