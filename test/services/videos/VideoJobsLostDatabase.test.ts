import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Schedule } from "effect"
import { eventually } from "../../harness/database/Money.ts"
import { assertDelivered, price, submitsOnly, type VideoBench, videoTest } from "../../harness/database/VideoBench.ts"
import { png } from "../../harness/fixtures/TinyPictures.ts"
import { doorTo } from "../../harness/gateway/Deployment.ts"

const key = "k"
const picture = { _tag: "Bytes", bytes: png } as const

/** A process that can lose its database, and that finds no work by itself. */
const losing = ({ process, url }: VideoBench) =>
  Effect.gen(function* () {
    const door = yield* doorTo(url)
    const { stop, videos } = yield* process({ ...submitsOnly, url: door.url })
    const isCut = eventually(door.isCut, (cut) => cut)
    return { door, videos, isCut, stop }
  })

describe.concurrent("a video of a process that loses its database", () => {
  for (const when of ["before", "after"] as const) {
    videoTest(`${when} the COMMIT that creates it is there once`, function* (bench) {
      const { job, money, process, store } = bench
      const { door, isCut, stop, videos } = yield* losing(bench)
      yield* door.cutAt("COMMIT", when)
      const creating = yield* Effect.fork(videos.create(job({ key, references: [picture] })))
      yield* isCut
      yield* door.mend
      const { video } = yield* Fiber.join(creating)
      assert.deepInclude(yield* money, { held: price, openHolds: 1 })
      assert.deepStrictEqual([store.names.public.length, store.names.private.length], [0, 1])
      yield* stop
      yield* process()
      assert.deepInclude(yield* assertDelivered(bench), { id: video.id, doubts: 0 })
    })

    videoTest(`${when} the COMMIT that creates it, and for long, is none: the request has failed`, function* (bench) {
      const { charged, job, org, provider, rows, sql } = bench
      const { door, videos } = yield* losing(bench)
      yield* door.cutAt("COMMIT", when)
      const exit = yield* Effect.exit(videos.create(job({ key })))
      assert.isTrue(Exit.isFailure(exit))
      assert.lengthOf(yield* rows, when === "before" ? 0 : 1)
      yield* door.mend
      yield* eventually(sql`SELECT id FROM holds WHERE state = 'open'`, (open) => open.length === 0)
      yield* charged()
      assert.deepStrictEqual(provider.called, [])
      assert.deepStrictEqual(yield* videos.list(org, 100), [])
      // The key is freed behind the request's back, too.
      const again = Effect.retry(videos.create(job({ key })), {
        schedule: Schedule.spaced("100 millis"),
        times: 100,
        while: ({ _tag }) => _tag === "IdempotencyConflict"
      })
      assert.isFalse((yield* again).replayed)
    })

    videoTest(`${when} the COMMIT that completes it is charged once, and keeps its file`, function* (bench) {
      const { hurry, job, money, store } = bench
      const door = yield* doorTo(bench.url)
      const { videos } = yield* bench.process({ url: door.url })
      yield* videos.create(job({ references: [picture] }))
      store.after(door.cutAt("COMMIT", when))
      yield* hurry
      yield* eventually(door.isCut, (cut) => cut)
      assert.deepInclude(yield* money, { charges: when === "before" ? [] : [price] })
      yield* door.mend
      yield* eventually(
        Effect.sync(() => store.names.private.length),
        (left) => left === 0
      )
      yield* assertDelivered(bench)
      assert.deepStrictEqual(bench.provider.calls("download"), ["m@a"])
    })
  }
})
