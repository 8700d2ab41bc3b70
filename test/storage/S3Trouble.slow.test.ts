import { Deferred, Effect, Fiber, Option, Stream } from "effect"
import { assert, describe, it } from "../harness/It.ts"
import * as S3 from "./S3.ts"
import type { SignedRequest } from "./SigV4.ts"
import { lines, mp4, opened, png, stored, video, videoBytes } from "./support.ts"

/** The first requests of a kind go wrong. */
const first = (count: number, isMeant: (request: SignedRequest) => boolean, misdeed: S3.Misdeed) => {
  let left = count
  return (request: SignedRequest) => (isMeant(request) && left-- > 0 ? misdeed : undefined)
}
const isOf = (method: string, part: string) => (request: SignedRequest) =>
  request.method === method && request.target.includes(part)
/** Long enough for a busy machine, unless silence is what we wait for. */
const patienceFor = (misdeed: S3.Misdeed) => (misdeed === "hang" ? "1 second" : "20 seconds")

describe("a failing bucket", () => {
  const slowDown = { status: 503, body: "<Error><Code>SlowDown</Code><Message>x</Message></Error>" }
  const passing: ReadonlyArray<readonly [what: string, misdeed: S3.Misdeed]> = [
    ["503", slowDown],
    ["429", { status: 429, body: "" }],
    ["500 without a word", { status: 500, body: "" }],
    ["400 RequestTimeout", { status: 400, body: "<Error><Code>RequestTimeout</Code></Error>" }],
    ["a broken connection", "break"],
    ["a lost answer", "lose"],
    ["silence", "hang"]
  ]
  it.scopedLive.each(passing)("is asked again after %s", function* ([, misdeed]) {
    const server = yield* S3.make
    const store = yield* opened(server, {}, patienceFor(misdeed))
    server.misbehave = first(2, isOf("PUT", "/public/"), misdeed)
    const name = yield* store.put(png)
    server.misbehave = first(2, isOf("GET", "/public/"), misdeed)
    assert.deepStrictEqual(Option.map(yield* store.read(name), String), Option.some("picture"))
    server.misbehave = first(2, isOf("DELETE", "/public/"), misdeed)
    assert.isTrue(yield* store.remove(name))
  })

  it.scopedLive.each(passing)("that keeps answering with %s fails after four tries", function* ([, misdeed]) {
    const server = yield* S3.make
    const store = yield* opened(server, {}, patienceFor(misdeed))
    server.misbehave = first(1000, isOf("PUT", "/public/"), misdeed)
    assert.strictEqual((yield* Effect.flip(store.put(png)))._tag, "MediaStoreFailed")
    assert.strictEqual(lines(server).filter((line) => line.startsWith("PUT")).length, 4)
    assert.deepStrictEqual(yield* stored(server), [])
  })

  const steps: ReadonlyArray<readonly [step: string, isMeant: (request: SignedRequest) => boolean]> = [
    ["beginning", isOf("POST", "?uploads")],
    ["a part", isOf("PUT", "partNumber=2")],
    ["the end", isOf("POST", "?uploadId")]
  ]
  for (const [what, misdeed] of [
    ["503", slowDown],
    ["a lost answer", "lose"]
  ] as const) {
    it.scopedLive.each(steps)(
      `gets over ${what} to %s of an upload, and keeps nothing where it stays`,
      function* ([, isMeant]) {
        const server = yield* S3.make
        const store = yield* opened(server)
        server.misbehave = first(2, isMeant, misdeed)
        const name = yield* store.put({ ...mp4, body: video })
        assert.strictEqual(Option.getOrThrow(yield* store.read(name)).length, videoBytes)
        assert.isTrue(yield* store.remove(name))
        const before = yield* stored(server)
        server.misbehave = first(1000, isMeant, misdeed)
        const failure = yield* Effect.flip(store.put({ ...mp4, body: video }))
        assert.strictEqual(failure._tag, "MediaStoreFailed")
        // Uploads that were begun without our hearing so have no parts; a rule of the bucket ends them.
        const left = (yield* stored(server)).filter((file) => !before.includes(file))
        assert.deepStrictEqual(
          left.filter((file) => !/\/(key|metadata)$/.test(file)),
          []
        )
      }
    )
  }

  it.scopedLive("that answers 200 with an error to the end of an upload fails", function* () {
    const server = yield* S3.make
    const store = yield* opened(server)
    const body = "<?xml version='1.0'?>\n\n<Error><Code>InternalError</Code><Message>We could not</Message></Error>"
    server.misbehave = first(1000, isOf("POST", "?uploadId"), { status: 200, body })
    const failure = yield* Effect.flip(store.put({ ...mp4, body: video }))
    assert.include(failure.detail, "the store answered 200 to POST: InternalError: We could not")
    assert.deepStrictEqual(yield* stored(server), [])
    server.misbehave = first(2, isOf("POST", "?uploadId"), { status: 200, body })
    assert.isTrue(yield* store.remove(yield* store.put({ ...mp4, body: video })))
  })

  it.scopedLive("gets the parts in order, and an abort when the upload fails", function* () {
    const server = yield* S3.make
    const store = yield* opened(server)
    yield* store.put({ ...mp4, body: video })
    yield* Effect.flip(store.put({ ...mp4, body: Stream.concat(video, Stream.fail("gone")) }))
    const key = `/${S3.bucket}/public/NAME`
    const begun = [`POST ${key}?uploads=`, `PUT ${key}?partNumber=1&uploadId=ID`, `PUT ${key}?partNumber=2&uploadId=ID`]
    assert.deepStrictEqual(lines(server), [
      ...begun,
      `PUT ${key}?partNumber=3&uploadId=ID`,
      `POST ${key}?uploadId=ID`,
      ...begun,
      `DELETE ${key}?uploadId=ID`
    ])
  })

  it.scopedLive("that never confirms an upload loses it when the caller is interrupted", function* () {
    const server = yield* S3.make
    const store = yield* opened(server)
    const reached = yield* Deferred.make<void>()
    const isEnd = isOf("POST", "?uploadId")
    server.misbehave = (request) => {
      if (!isEnd(request)) return undefined
      Deferred.unsafeDone(reached, Effect.void)
      return "hang"
    }
    const putting = yield* Effect.fork(store.put({ ...mp4, body: video }))
    yield* Deferred.await(reached)
    yield* Fiber.interrupt(putting)
    assert.deepStrictEqual(yield* stored(server), [])
    const [removed, aborted] = lines(server).slice(-2)
    assert.strictEqual(removed, `DELETE /${S3.bucket}/public/NAME`)
    assert.strictEqual(aborted, `DELETE /${S3.bucket}/public/NAME?uploadId=ID`)
  })
})
