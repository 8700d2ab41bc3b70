import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { Deferred, Effect } from "effect"
import type { FailpointName } from "../../src/services/runtime/Failpoint.ts"
import { Deployment } from "../harness/gateway/Deployment.ts"
import type { ShortTimings } from "../harness/gateway/ShortTimings.ts"
import { assert } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { videoEnvironment } from "../harness/upstream/RenderFarm.ts"
import * as LeaseLog from "./LeaseLog.ts"

export interface Death {
  /** `withheld`: a submit has reached the farm, which says nothing. */
  readonly at: Extract<FailpointName, `video_${string}` | "after_hold"> | "withheld"
  /** Whether it dies there the first time or a later one. */
  readonly turn: number
  /** How many customers ask this process. */
  readonly asks: number
}

/** An address at which one process follows the other. */
export interface Slot {
  readonly port: string
  readonly url: string
  /** One for each customer that may ask. */
  readonly permits: Effect.Semaphore
}

const slot = Effect.gen(function* () {
  const port = yield* freePort
  const permits = yield* Effect.makeSemaphore(0)
  return { port: String(port), url: `http://127.0.0.1:${port}`, permits } satisfies Slot
})

/** Two addresses for gateways that sell the films of one farm, and die where they are told to. */
export const make = Effect.fnUntraced(function* (rules: Omit<RenderFarm.Rules, "before">, timings: ShortTimings) {
  const { directory, gateway } = yield* Deployment
  const withheld = new Map<string, Deferred.Deferred<void>>()
  const farm = yield* RenderFarm.make({
    ...rules,
    before: ({ credential, step }) => {
      const reached = step === "submit" ? withheld.get(credential) : undefined
      return reached === undefined ? Effect.void : Effect.zipRight(Deferred.succeed(reached, undefined), Effect.never)
    }
  })
  const videos = yield* videoEnvironment(farm.url)
  const [left, right] = [yield* slot, yield* slot]

  const start = ({ port }: Slot, env: Readonly<Record<string, string>> = {}) =>
    gateway({ timings, env: { ...videos, PORT: port, PUBLIC_URL: left.url, ...env } })

  /** Runs a gateway until it is killed; says when that was. */
  const kill = (mine: Slot, { asks, at, turn }: Death) =>
    Effect.gen(function* () {
      const name = `${mine.port}-${at}`
      const marker = path.join(directory, name)
      const reached = yield* Deferred.make<void>()
      if (at === "withheld") withheld.set(`Key ${name}`, reached)
      const failpoint = { FAILPOINT: at, FAILPOINT_TURN: String(turn), FAILPOINT_MARKER: marker }
      const died = yield* start(mine, { ...failpoint, FARM_KEY: name }).pipe(
        Effect.tap(() => mine.permits.release(asks)),
        Effect.tap(({ signal }) =>
          at === "withheld" ? Effect.zipRight(Deferred.await(reached), signal("SIGKILL")) : Effect.void
        ),
        Effect.flatMap(({ ended, stderr }) =>
          Effect.timeoutFail(ended, {
            duration: "60 seconds",
            onTimeout: () => new Error(`${name} lives: ${stderr()}`)
          })
        ),
        Effect.map(({ signal }) => signal),
        // It works on jobs before it listens, and may die of one.
        Effect.catchTag("NotStarted", ({ message }) =>
          Effect.as(mine.permits.release(asks), /^the gateway ended with (\w+)/.exec(message)?.[1] ?? message)
        )
      )
      assert.strictEqual(died, "SIGKILL")
      if (at !== "withheld") assert.strictEqual(existsSync(marker) && readFileSync(marker, "utf8"), at)
      return yield* LeaseLog.now
    }).pipe(Effect.scoped)

  return { farm, left, right, start, kill }
})
