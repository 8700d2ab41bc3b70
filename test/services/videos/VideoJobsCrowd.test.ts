import { assert, describe } from "@effect/vitest"
import { Effect, Either, Fiber } from "effect"
import { lock, waitingForLock } from "../../harness/database/Money.ts"
import { videoTest } from "../../harness/database/VideoBench.ts"

describe("many videos of one organization", () => {
  videoTest("wait for each other without keeping the rest from the database", function* (bench) {
    const { charged, job, org, outside, process, provider } = bench
    const { videos } = yield* process()
    const { unlock } = yield* Effect.provide(lock(org), outside)
    const creating = yield* Effect.fork(
      Effect.forEach(Array.from({ length: 30 }), () => Effect.either(videos.create(job())), {
        concurrency: "unbounded"
      })
    )
    yield* Effect.provide(waitingForLock("generation-gateway"), outside)
    assert.deepStrictEqual(yield* Effect.timeout(videos.list(org, 1), "3 seconds"), [])
    assert.isNull(creating.unsafePoll())
    yield* unlock
    assert.lengthOf((yield* Fiber.join(creating)).filter(Either.isRight), 30)
    yield* bench.hurry
    assert.lengthOf(provider.calls("submit"), 30)
    for (const { id } of yield* videos.list(org, 100)) yield* Effect.ignore(bench.desk.cancel(id))
    const clips = (yield* bench.rows).filter(({ status }) => status === "completed")
    yield* charged(...clips.map(() => 800_000_000n))
  })
})
