import { Context, Effect, Layer, Logger, LogLevel, Option, Redacted, type Scope, Stream } from "effect"
import { Reloads } from "../../src/services/control/ControlFollower.ts"
import { assert, type Body, describe, effectOf, it } from "../harness/It.ts"
import * as S3 from "./S3.ts"
import { mp4, opened, png, video, videoBytes } from "./support.ts"

/** A store, its bucket, and the current token of the settings. */
const rotatable = Effect.gen(function* () {
  const server = yield* S3.make
  let token = server.sessionToken
  const reread = Effect.sync(() => ({ ...server.options, sessionToken: Redacted.make(token) }))
  const reloads = yield* Layer.build(Reloads.layer)
  const store = yield* Effect.provide(opened(server, {}, "20 seconds", reread), reloads)
  const set = (next: string) => {
    token = next
  }
  const refused = () => server.asked.filter(({ verdict }) => verdict !== "ok").map(({ line }) => line.split(" ")[0])
  return { server, store, set, refused, reload: Context.get(reloads, Reloads).run }
})

const quietly = (title: string, body: Body<[], Scope.Scope>) =>
  it.scopedLive(title, () => Logger.withMinimumLogLevel(effectOf(body)(), LogLevel.None))

describe("temporary credentials of a bucket", () => {
  quietly("are read again when the bucket refuses them, and the request is retried", function* () {
    const { refused, server, set, store } = yield* rotatable
    const name = yield* store.put(png)
    const steps = [
      ["PUT", store.put(png)],
      ["HEAD", store.has(name)],
      ["GET", Effect.map(store.read(name), Option.getOrThrow)],
      ["HEAD", store.remove(name)]
    ] as const
    for (const [index, [, step]] of steps.entries()) {
      server.sessionToken = `token-${index}`
      set(`token-${index}`)
      yield* step
    }
    assert.deepStrictEqual(
      refused(),
      steps.map(([method]) => method)
    )
  })

  quietly("may be replaced in the middle of an upload", function* () {
    const { refused, server, set, store } = yield* rotatable
    server.misbehave = ({ target }) => {
      if (target.includes("partNumber=1")) {
        server.sessionToken = "next"
        set("next")
      }
      return undefined
    }
    const name = yield* store.put({ ...mp4, body: video })
    assert.strictEqual(Option.getOrThrow(yield* store.read(name)).length, videoBytes)
    assert.deepStrictEqual(refused(), ["PUT"])
  })

  quietly("fail the request after one try if they were not replaced, and are never logged", function* () {
    const { refused, server, store } = yield* rotatable
    server.sessionToken = "next"
    const failure = yield* Effect.flip(store.put({ ...png, body: Stream.make(png.body) }))
    assert.strictEqual(failure.detail, "the store answered 403 to PUT: InvalidToken: Says InvalidToken")
    assert.deepStrictEqual(refused(), ["PUT"])
  })

  quietly("are read again at a reload, before any request is refused", function* () {
    const { refused, reload, server, set, store } = yield* rotatable
    yield* store.put(png)
    server.sessionToken = "next"
    set("next")
    yield* reload
    yield* store.put(png)
    assert.deepStrictEqual(refused(), [])
  })
})
