import { randomUUID } from "node:crypto"
import { Effect, Record as Rec } from "effect"
import { productionTimings } from "../../../src/services/runtime/Timings.ts"
import { unconfirmedSubmit, VideoSql } from "../../../src/services/videos/VideoSql.ts"
import {
  type Lease,
  type LeasedTransition,
  timeoutError,
  transitions,
  type VideoStep
} from "../../../src/services/videos/VideoState.ts"
import { assert, describe } from "../../harness/It.ts"
import { submitsOnly, videoTest } from "./VideoBench.ts"

describe("a transition of a video", () => {
  videoTest("is made only from the steps in the table and by the holder of the lease", function* (bench) {
    const { job, process, sql } = bench
    const { stop, videos } = yield* process(submitsOnly)
    yield* videos.create(job())
    yield* stop
    yield* bench.hurry
    const rows = new VideoSql(sql, productionTimings.videoLease)
    const [leased] = yield* rows.claim(1)
    if (leased === undefined) return assert.fail("nothing was due")
    const all: Record<LeasedTransition, (job: Lease) => Effect.Effect<unknown, unknown>> = {
      storeReference: (one) => rows.storeReference(one, "private/x"),
      submit: (one) => rows.submit(one, { id: "m@b", route: "{}", uncertainSubmits: 0, mayRetryRoute: true }),
      recordUncertainSubmit: (one) => rows.recordUncertainSubmit(one, 1),
      render: (one) => rows.render(one, "handle", []),
      poll: (one) => rows.poll(one, true),
      resubmit: (one) => rows.resubmit({ ...leased, ...one, step: "submitting", route: null }, 1, unconfirmedSubmit),
      complete: (one) => rows.complete(one, { mediaName: "m", cost: undefined, isSandbox: false }),
      fail: (one) => rows.fail({ ...leased, ...one }, { error: timeoutError, isSandbox: false }),
      cancelUpstream: (one) => Effect.map(rows.cancelUpstream(one), (changed) => changed.length > 0)
    }
    const steps: ReadonlyArray<VideoStep> = ["submit", "submitting", "rendering"]
    for (const [name, transit] of Rec.toEntries(all)) {
      const { from, to }: { readonly from: ReadonlyArray<VideoStep>; readonly to: VideoStep } = transitions[name]
      for (const step of steps) {
        for (const holder of [leased, { id: leased.id, lease: randomUUID() }]) {
          const after = yield* Effect.gen(function* () {
            yield* sql`UPDATE videos SET step = ${step}`
            yield* transit(holder)
            return yield* Effect.fail((yield* bench.row).step)
          }).pipe(sql.withTransaction, Effect.flip)
          const isMade = holder === leased && from.includes(step)
          assert.deepStrictEqual<unknown>(after, isMade ? to : step, `${name} at ${step}`)
        }
      }
    }
  })
})
