import { ApiError, createFalClient, isCompletedQueueStatus, isQueueStatus, ValidationError } from "@fal-ai/client"
import { Effect } from "effect"
import { secret } from "../../contracts/MediaHarness.ts"
import { assert, type Body, describe, effectOf, it } from "../../harness/It.ts"
import * as FalHost from "./FalHost.ts"

const model = "fal-ai/veo3.1/fast"
const input = { prompt: "A red bicycle", duration: "8s" } as const

const client = (host: FalHost.FalHost) =>
  createFalClient({
    credentials: secret,
    requestMiddleware: async (request) => ({ ...request, url: request.url.replace("https://queue.fal.run", host.url) })
  })

const check = (name: string, body: Body<[fal: ReturnType<typeof client>, host: FalHost.FalHost], never>) =>
  it.scopedLive(name, () => Effect.flatMap(FalHost.make, (host) => effectOf(body)(client(host), host)))

describe("our own fal host, as fal's official client sees it", () => {
  check("takes a job, tells where it stands, gives its result", function* ({ queue }, host) {
    const taken = yield* Effect.promise(() => queue.submit(model, { input }))
    assert.isOk(isQueueStatus(taken))
    assert.deepStrictEqual(FalHost.jobOf(yield* host.heard("submit")), { model, input, credential: `Key ${secret}` })
    const { request_id: requestId } = taken
    for (const stands of ["IN_QUEUE", "IN_PROGRESS"]) {
      yield* host.stands(stands)
      const status = yield* Effect.promise(() => queue.status(model, { requestId }))
      assert.isOk(isQueueStatus(status))
      assert.strictEqual(status.status, stands)
      assert.strictEqual(status.request_id, requestId)
      const { pathname } = new URL(status.status_url)
      const { path } = yield* host.heard("poll")
      assert.strictEqual(path.split("?")[0], `/queue${pathname}`, "the client asks where the answer says")
    }
    yield* host.ends({ video: { url: "https://v3.fal.media/files/b/clip.mp4" } })
    const status = yield* Effect.promise(() => queue.status(model, { requestId }))
    assert.isOk(isCompletedQueueStatus(status))
    const { data } = yield* Effect.promise(() => queue.result(model, { requestId }))
    assert.strictEqual(data.video.url, "https://v3.fal.media/files/b/clip.mp4")
  })

  check("gives a job up", function* ({ queue }, host) {
    const { request_id: requestId } = yield* Effect.promise(() => queue.submit(model, { input }))
    yield* Effect.promise(() => queue.cancel(model, { requestId }))
    assert.strictEqual((yield* host.heard("cancel")).method, "PUT")
  })

  for (const name of ["request", "image", "moderation"] as const) {
    check(`refuses by ${name} as a typed detail`, function* ({ queue }, host) {
      yield* host.meets("submit", FalHost.refusals[name])
      const error = yield* Effect.flip(
        Effect.tryPromise({ try: () => queue.submit(model, { input }), catch: (it) => it })
      )
      if (!(error instanceof ValidationError)) return assert.fail(String(error))
      assert.lengthOf(error.fieldErrors, 1)
      const field = name === "image" ? "image_url" : "prompt"
      assert.lengthOf(error.getFieldErrors(field), 1)
    })
  }

  for (const [name, status] of [
    ["funds", 403],
    ["key", 401],
    ["missing", 404],
    ["server", 500]
  ] as const) {
    check(`refuses by ${name} with a status`, function* ({ queue }, host) {
      yield* host.meets("submit", FalHost.refusals[name])
      const error = yield* Effect.flip(
        Effect.tryPromise({ try: () => queue.submit(model, { input }), catch: (it) => it })
      )
      if (!(error instanceof ApiError)) return assert.fail(String(error))
      assert.strictEqual(error.status, status)
    })
  }
})
