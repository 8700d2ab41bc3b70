import * as Failure from "../../../src/domain/Failure.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, rateOf, refusals } from "../../harness/client/HttpCalls.ts"
import { logged } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { gif } from "../images/ImageBodies.ts"
import { edits, generations, lastImage, lastVideo, layer, MediaServer, post, videos } from "../MediaServer.ts"

const image = { surface: "image", status: 200, job: lastImage, body: { model: "draw", prompt: "a cat", image: gif } }
const video = { surface: "video", status: 202, job: lastVideo, body: { model: "film", prompt: "a cat runs" } }
const endpoints = [
  { path: generations, ...image },
  { path: edits, ...image },
  { path: videos, ...video }
]

const failures = [
  [new Failure.IdempotencyConflict(), refusals.conflict],
  [new Failure.InsufficientCredits({ needed: NanoUsd(2n), available: 1n }), refusals.shortOf(2n, 1n)],
  [new Failure.SpendLimitReached({ period: "day" }), { ...refusals.capped("day"), hint: undefined }],
  [new Failure.ContentRejected(), refusals.moderated],
  [new Failure.UpstreamRejected({ param: null }), refusals.rejected],
  [
    new Failure.InvalidRequest({ message: "Failed to process the reference image.", param: "image", hint: "Why." }),
    refusals.unusable("Why.")
  ],
  [new Failure.UpstreamFailed(), refusals.upstream],
  [new Failure.UpstreamAuthFailed(), refusals.upstreamAuth],
  [new Failure.AllProvidersFailed({ provider: "p", status: 429 }), refusals.allFailed("p", 429)],
  [new Failure.NoHealthyProvider(), refusals.noProvider],
  [new Failure.TimedOut(), refusals.timedOut]
] as const

withLayer(layer)("a request for an image or a video", (it) => {
  const keys = ["retry-1", "", "ä", "a, b", "x".repeat(300)]
  it.effect.each(endpoints)("carries the idempotency key as it was sent to $path", function* ({ body, job, path }) {
    const account = yield* openAccount({})
    for (const key of keys) {
      yield* post(account, path, body, { headers: { "Idempotency-Key": key } })
      assert.strictEqual((yield* job).idempotencyKey, key)
    }
  })

  const ends = endpoints.flatMap(({ body, path }) =>
    failures.map(([failure, refusal]) => ({ body, failure, path, refusal, tag: failure._tag }))
  )
  it.effect.each(ends)("to $path fails with $tag", function* ({ body, failure, path, refusal }) {
    const media = yield* MediaServer
    const account = yield* openAccount({ rpm: 5 })
    if (path === videos) media.videos.script(failure)
    else media.images.script(failure)
    const answer = yield* post(account, path, body)
    assertRefused(answer, refusal)
    assert.strictEqual(answer.headers.get("x-should-retry"), answer.status === 409 ? "false" : null)
    assert.deepStrictEqual(rateOf(answer), { limit: 5, remaining: 4 })
  })

  it.effect("fails with SettleFailed when an image cannot be charged", function* () {
    const { images } = yield* MediaServer
    images.script(new Failure.SettleFailed())
    const answer = yield* post(yield* openAccount({ rpm: 5 }), edits, image.body)
    assertRefused(answer, { ...refusals.internal, retryAfter: "5" })
    assert.deepStrictEqual(rateOf(answer), { limit: 5, remaining: 4 })
  })

  it.effect.each(endpoints)("to $path is logged, refused or not", function* ({ body, path, status, surface }) {
    const account = yield* openAccount({})
    const whole = yield* post(account, path, body)
    const refused = yield* post(account, path, { ...body, model: "nobody", n: 2 })
    const row = yield* logged(whole.headers.get("x-request-id"))
    assert.deepStrictEqual([row.surface, row.status, row.code, row.model], [surface, status, null, body.model])
    assert.isNotNull(row.firstByteMs)
    const other = yield* logged(refused.headers.get("x-request-id"))
    assert.deepStrictEqual([other.status, other.model, other.firstByteMs], [400, "nobody", null])
  })
})
