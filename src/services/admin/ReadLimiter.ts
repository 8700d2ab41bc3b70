import { SqlError } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"
import { CurrentActor } from "./Actor.ts"

const maxReads = 2
const maxWait = "10 seconds"

type Turn = <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface ReadSlots {
  /**
   * Runs a read when a slot is free. A read keeps its slot after a disconnect, because the database continues its statement.
   */
  readonly take: Turn
  /** Like `take`, but fails with `GatewayBusy` if the wait or the statement takes too long. */
  readonly runOrBusy: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>
  /** Reads one page of a download when no other download reads one. */
  readonly download: Turn
}

const failOnTimeout = Effect.catchSomeDefect((defect) =>
  defect instanceof SqlError.SqlError && isStatementTimeout(defect) ? Option.some(new GatewayBusy()) : Option.none()
)

const makeTurns = (enter: Turn, download: Turn): ReadSlots => {
  const take: Turn = (read) => enter(Effect.uninterruptible(read))
  return {
    take,
    runOrBusy: (read) =>
      Effect.suspend(() => {
        let hasStarted = false
        const markStarted = Effect.sync(() => (hasStarted = true))
        const failUnlessStarted = Effect.suspend(() => (hasStarted ? Effect.never : new GatewayBusy()))
        return Effect.raceFirst(
          Effect.interruptible(take(Effect.zipRight(markStarted, failOnTimeout(read)))),
          Effect.interruptible(Effect.delay(failUnlessStarted, maxWait))
        )
      }),
    download
  }
}

/** Limits concurrent reads, so they don't slow down customers' requests. Operators share one limit, and members another. */
export class ReadLimiter extends Context.Tag("gateway/ReadLimiter")<
  ReadLimiter,
  {
    /** Members of one organization also share a limit of one read at a time. */
    readonly of: (scope: OrganizationScope) => ReadSlots
  }
>() {
  static readonly layer = Layer.effect(
    ReadLimiter,
    Effect.gen(function* () {
      const reads = yield* Effect.makeSemaphore(maxReads)
      const downloads = yield* Effect.makeSemaphore(1)
      const operators = makeTurns(reads.withPermits(1), downloads.withPermits(1))
      const memberReads = yield* makeKeyedSemaphore(maxReads)
      const memberDownloads = yield* makeKeyedSemaphore(1)
      return ReadLimiter.of({
        of: ({ org }) => (org === undefined ? operators : makeTurns(memberReads(org), memberDownloads(org)))
      })
    })
  )
}

export const currentReadSlots = Effect.zipWith(ReadLimiter, CurrentActor, (turns, { scope }) => turns.of(scope))
