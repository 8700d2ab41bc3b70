import { SqlClient } from "@effect/sql"
import { Clock, Context, Effect, Fiber, Layer } from "effect"
import { Instances } from "../../control/Instances.ts"
import { RouteControls } from "../../control/RouteControls.ts"
import { RouteHealth } from "../../routing/RouteHealth.ts"
import * as Monotonic from "../../runtime/Monotonic.ts"
import { Usage } from "../../telemetry/Usage.ts"
import { readAttention, spendReader } from "./Attention.ts"
import { circuitsOf } from "./Circuits.ts"
import { hoursReader, readFigures, readHolds } from "./Figures.ts"
import { marginsReader } from "./Margins.ts"
import type { NowRecord } from "./Record.ts"

const keptMillis = 1_000
/** Requests need the other connections. */
const queriesAtOnce = 2

/** What happens now, and what needs an operator. */
export class Now extends Context.Tag("gateway/Now")<
  Now,
  {
    /** At most a second old, so that many open consoles cost one. */
    readonly read: Effect.Effect<NowRecord>
    readonly at: (now: number) => Effect.Effect<NowRecord>
  }
>() {
  static readonly layer = Layer.scoped(
    Now,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Effect.scope
      const usage = yield* Usage
      const health = yield* RouteHealth
      const controls = yield* RouteControls
      const running = yield* Instances

      const readHours = hoursReader(usage)
      const readSpend = spendReader(usage)
      const readMargins = marginsReader(usage)

      const at = Effect.fn("Now.at")(function* (now: number) {
        const [figures, hours, holds, spent, margins, listed] = yield* Effect.all(
          [
            readFigures(sql, usage, now),
            readHours(now),
            readHolds(sql),
            readSpend(now),
            readMargins(now),
            Effect.all({ health: health.list, disabled: controls.disabled, instances: running.list })
          ],
          { concurrency: queriesAtOnce }
        )
        const circuits = circuitsOf(listed.health, listed.disabled)
        const attention = yield* readAttention(sql, { ...listed, circuits, margins, spent }, now)
        const record: NowRecord = { at: new Date(now), ...figures, hours, holds, circuits, attention }
        return record
      })

      let latest: { readonly fiber: Fiber.Fiber<NowRecord>; readonly startedAt: number } | undefined
      let isReading = false
      const done = Effect.sync(() => (isReading = false))
      const read = Effect.gen(function* () {
        const startedAt = yield* Monotonic.millis
        if (latest === undefined || (!isReading && startedAt - latest.startedAt >= keptMillis)) {
          isReading = true
          const reading = Effect.ensuring(Effect.flatMap(Clock.currentTimeMillis, at), done)
          latest = { fiber: yield* Effect.forkIn(reading, scope), startedAt }
        }
        return yield* Fiber.join(latest.fiber)
      })
      return Now.of({ at, read })
    })
  )
}
