import { assert, describe } from "@effect/vitest"
import { assertDelivered, price, videoTest } from "../../harness/database/VideoBench.ts"

describe.concurrent("a video", () => {
  videoTest("is taken, rendered, stored and charged for", function* (bench) {
    const { job, money, org, process, provider, until } = bench
    const { videos } = yield* process()
    const { replayed, video } = yield* videos.create(job())
    assert.isFalse(replayed)
    assert.deepInclude(video, { status: "queued", model: "m", seconds: 8, url: undefined, error: undefined })
    assert.match(video.id, /^vid_/)
    assert.deepInclude(yield* money, { held: price, openHolds: 1, charges: [] })
    yield* until(({ status }) => status === "completed")
    const { media } = yield* assertDelivered(bench)
    const found = yield* videos.find(org, video.id)
    assert.deepInclude(found, { status: "completed", url: `http://media.test/${media}`, seconds: 8 })
    assert.deepStrictEqual(provider.calls(), ["submit m@a", "poll m@a", "download m@a"])
  })
})
