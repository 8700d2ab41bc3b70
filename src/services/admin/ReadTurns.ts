import { SqlError } from "@effect/sql"
import { Context, Effect, Layer, Option } from "effect"
import { GatewayBusy } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { isStatementTimeout } from "../sql/Outage.ts"
import { CurrentActor } from "./Actor.ts"

const readsAtOnce = 2
const longestWait = "10 seconds"

type Turn = <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

interface Turns {
  /** A read keeps its turn when its client leaves: the database goes on with it. */
  readonly take: Turn
  /** Fails where its turn does not come in time, and where the database's time limit cuts it. */
  readonly takeSoon: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | GatewayBusy, R>
  /** One page of all downloads at a time. */
  readonly download: Turn
}

const failWhereCut = Effect.catchSomeDefect((defect) =>
  defect instanceof SqlError.SqlError && isStatementTimeout(defect) ? Option.some(new GatewayBusy()) : Option.none()
)

const turnsWith = (enter: Turn, download: Turn): Turns => {
  const take: Turn = (read) => enter(Effect.uninterruptible(read))
  return {
    take,
    takeSoon: (read) =>
      Effect.suspend(() => {
        let hasBegun = false
        const begin = Effect.sync(() => (hasBegun = true))
        const giveUp = Effect.suspend(() => (hasBegun ? Effect.never : new GatewayBusy()))
        return Effect.raceFirst(
          Effect.interruptible(take(Effect.zipRight(begin, failWhereCut(read)))),
          Effect.interruptible(Effect.delay(giveUp, longestWait))
        )
      }),
    download
  }
}

/** Operators share one limit, since customers' requests share the database and the event loop, and members another. */
export class ReadTurns extends Context.Tag("gateway/ReadTurns")<
  ReadTurns,
  {
    /** The members of an organization read one thing at a time. */
    readonly of: (scope: OrganizationScope) => Turns
  }
>() {
  static readonly layer = Layer.effect(
    ReadTurns,
    Effect.gen(function* () {
      const reads = yield* Effect.makeSemaphore(readsAtOnce)
      const downloads = yield* Effect.makeSemaphore(1)
      const operators = turnsWith(reads.withPermits(1), downloads.withPermits(1))
      const memberReads = yield* makeKeyedSemaphore(readsAtOnce)
      const memberDownloads = yield* makeKeyedSemaphore(1)
      return ReadTurns.of({
        of: ({ org }) => (org === undefined ? operators : turnsWith(memberReads(org), memberDownloads(org)))
      })
    })
  )
}

/** The turns of who reads. */
export const currentTurns = Effect.zipWith(ReadTurns, CurrentActor, (turns, { scope }) => turns.of(scope))
