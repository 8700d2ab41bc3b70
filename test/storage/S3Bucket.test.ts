import { Effect, Option, Redacted } from "effect"
import { addressOf } from "../../src/storage/S3Client.ts"
import { assert, describe, it } from "../harness/It.ts"
import * as S3 from "./S3.ts"
import type { SignedRequest } from "./SigV4.ts"
import { lines, mp4, opened, png, stored, video, videoBytes } from "./support.ts"

describe("media in a bucket", () => {
  it.scopedLive("are served by the bucket with type and caching; private ones are not", function* () {
    const server = yield* S3.make
    const store = yield* opened(server)
    const name = yield* store.put(png)
    assert.strictEqual(store.link(name), `${server.url}/${S3.bucket}/${name}`)
    const answer = yield* Effect.promise(() => fetch(store.link(name)))
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(answer.headers.get("content-type"), "image/png")
    assert.strictEqual(answer.headers.get("cache-control"), "public, max-age=31536000, immutable")
    assert.strictEqual(yield* Effect.promise(() => answer.text()), "picture")

    const long = yield* store.put({ ...mp4, body: video })
    const head = yield* Effect.promise(() => fetch(store.link(long), { method: "HEAD" }))
    assert.strictEqual(head.headers.get("content-type"), "video/mp4")
    assert.strictEqual(head.headers.get("cache-control"), "public, max-age=31536000, immutable")
    assert.strictEqual(head.headers.get("content-length"), String(videoBytes))

    const secret = yield* store.put({ ...png, visibility: "private" })
    const refused = yield* Effect.promise(() => fetch(`${server.url}/${S3.bucket}/${secret}`))
    assert.strictEqual(refused.status, 403)
    assert.isTrue(Option.isSome(yield* store.read(secret)))
    assert.isTrue(server.asked.filter(({ line }) => line.startsWith("PUT")).every(({ verdict }) => verdict === "ok"))
  })

  it.scopedLive("cause no request before the first file", function* () {
    const server = yield* S3.make
    const store = yield* opened(server, { endpoint: "http://127.0.0.1:1" })
    const failure = yield* Effect.flip(store.put(png))
    assert.include(failure.detail, "the store cannot be reached: ECONNREFUSED")
    const later = yield* opened(server)
    assert.lengthOf(server.asked, 0)
    yield* later.put(png)
    assert.deepStrictEqual(lines(server), [`PUT /${S3.bucket}/public/NAME`])
  })

  const wrong: ReadonlyArray<
    readonly [what: string, options: Partial<S3.S3Server["options"]>, says: string, secret: string]
  > = [
    [
      "secret",
      { secretAccessKey: Redacted.make("guessed-secret") },
      "403 to PUT: SignatureDoesNotMatch",
      "guessed-secret"
    ],
    ["key", { accessKeyId: Redacted.make("GUESSEDKEY") }, "403 to PUT: InvalidAccessKeyId", "GUESSEDKEY"],
    ["token", { sessionToken: Redacted.make("guessed-token") }, "403 to PUT: InvalidToken", "guessed-token"],
    ["token that cannot be sent", { sessionToken: Redacted.make("broken\ntoken") }, "[credential]", "broken\ntoken"],
    ["region", { region: "mars-1" }, "403 to PUT: SignatureDoesNotMatch", "secret/of+tests="],
    ["bucket", { bucket: "nowhere" }, "404 to PUT: NoSuchBucket", "secret/of+tests="]
  ]
  it.scopedLive.each(wrong)(
    "with a wrong %s are refused once, without a secret in the failure",
    function* ([what, options, says, secret]) {
      const server = yield* S3.make
      const store = yield* opened(server, options)
      const failure = yield* Effect.flip(store.put(png))
      assert.strictEqual(failure._tag, "MediaStoreFailed")
      assert.include(failure.detail, says)
      assert.notInclude(JSON.stringify(failure), secret)
      assert.isAtMost(server.asked.length, 1)
      const name = `public/${"a".repeat(32)}.png`
      assert.strictEqual((yield* Effect.flip(store.read(name)))._tag, "MediaStoreFailed")
      // Nothing tells what is missing in the answer to HEAD.
      if (what === "bucket") assert.isFalse(yield* store.has(name))
      else assert.strictEqual((yield* Effect.flip(store.has(name)))._tag, "MediaStoreFailed")
      assert.deepStrictEqual(yield* stored(server), [])
    }
  )

  const changes: ReadonlyArray<readonly [what: string, change: (request: SignedRequest) => SignedRequest]> = [
    ["payload", (request) => ({ ...request, body: Buffer.from("forgery") })],
    ["type", (request) => ({ ...request, headers: { ...request.headers, "content-type": "text/html" } })],
    ["caching", (request) => ({ ...request, headers: { ...request.headers, "cache-control": "no-cache" } })],
    [
      "hash",
      (request) => ({ ...request, headers: { ...request.headers, "x-amz-content-sha256": "UNSIGNED-PAYLOAD" } })
    ],
    ["name", (request) => ({ ...request, target: request.target.replace("public", "private") })],
    ["permission", (request) => ({ ...request, headers: { ...request.headers, "x-amz-acl": "public-read" } })]
  ]
  it.scopedLive.each(changes)("with a %s changed on the way are refused", function* ([, change]) {
    const server = yield* S3.make
    server.tamper = change
    const store = yield* opened(server)
    const failure = yield* Effect.flip(store.put(png))
    assert.include(failure.detail, "SignatureDoesNotMatch")
    assert.deepStrictEqual(yield* stored(server), [])
  })

  it("are addressed as AWS does, or below the address of another service", () => {
    const region = "eu-west-3"
    const places: ReadonlyArray<readonly [bucket: string, endpoint: string | undefined, address: string]> = [
      ["media", undefined, "https://media.s3.eu-west-3.amazonaws.com"],
      ["media.acme.test", undefined, "https://s3.eu-west-3.amazonaws.com/media.acme.test"],
      ["media", "http://127.0.0.1:9000", "http://127.0.0.1:9000/media"],
      ["media", "https://storage.acme.test/s3", "https://storage.acme.test/s3/media"]
    ]
    for (const [bucket, endpoint, address] of places) {
      assert.strictEqual(addressOf({ bucket, endpoint, region }), address)
    }
  })
})
