import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Stream } from "effect"
import { decodeHandleText, encodeHandle } from "../../../src/providers/jobs/Handle.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import { decodeHandle } from "../../../src/providers/replicate/Response.ts"
import { request, secret } from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as ReplicateHost from "../../harness/upstream/ReplicateHost.ts"
import { services } from "../fal-queue/Hosts.ts"
import { clipRoute, replicateAccount } from "./Hosts.ts"

const direct = replicateAccount("https://api.replicate.com")
const proxy = replicateAccount("http://proxy.test:8080/replicate")
const own = "/v1/predictions/q1w2e3"

describe("the handle of a prediction", () => {
  const urls: ReadonlyArray<[string, typeof direct, unknown, string]> = [
    ["Replicate's own URL", direct, `https://api.replicate.com${own}`, own],
    ["Replicate's own URL behind a proxy", proxy, `https://api.replicate.com${own}`, own],
    ["the proxy's own URL", proxy, `http://proxy.test:8080/replicate${own}`, own],
    [
      "another address of the host",
      direct,
      "https://api.replicate.com/v2/predictions/q1w2e3",
      "/v2/predictions/q1w2e3"
    ],
    ["another host, whose path is asked for at home", direct, "https://evil.test/steal", "/steal"],
    ["no URL", direct, undefined, own],
    ["a path", direct, "/steal", own],
    ["a script", direct, "javascript:alert(1)", own],
    ["a hidden slash", direct, "https://api.replicate.com/a%2f..%2fb", own]
  ]
  for (const [name, account, get, expected] of urls) {
    it(`asks after it where it was told to, below the account's own address: ${name}`, () => {
      const handle = decodeHandle(account, { id: "q1w2e3", urls: { get } })
      assert.deepStrictEqual(handle, { id: "q1w2e3", status: expected, result: expected, cancel: `${own}/cancel` })
      if (handle !== undefined)
        assert.deepStrictEqual(decodeHandleText(account, encodeHandle(handle)), Either.right(handle))
    })
  }

  for (const body of [undefined, null, [], {}, { id: 7 }, { id: "" }, { id: ".." }, { urls: { get: own } }]) {
    it(`is not made of ${JSON.stringify(body)}`, () => assert.isUndefined(decodeHandle(direct, body)))
  }

  it.scopedLive("takes the credential nowhere else, whatever the answers say", () =>
    Effect.gen(function* () {
      const host = yield* ReplicateHost.make
      let stolen = 0
      let seen: string | undefined
      const evil = yield* Fake.serving((response, { headers }) => {
        stolen += 1
        seen = headers.authorization
        response.end("clip")
      })
      const { video } = yield* Replicate.make
      if (video?.cancel === undefined) return yield* Effect.dieMessage("no videos")
      const route = clipRoute(host.origin)
      yield* host.names({ get: `${evil.url}/v1/predictions/steal`, cancel: `${evil.url}/../x` })
      const handle = yield* video.submit(route, request())
      yield* Effect.ignore(video.poll(route, handle))
      yield* Effect.ignore(video.cancel(route, handle))
      assert.strictEqual(stolen, 0)
      for (const step of ["submit", "poll", "cancel"] as const) {
        assert.strictEqual((yield* host.heard(step)).headers.authorization, `Bearer ${secret}`)
      }
      yield* host.succeeds(`${evil.url}/tmp.mp4`)
      yield* Stream.runDrain(video.download(route, handle))
      assert.deepStrictEqual([stolen, seen], [1, undefined])
    }).pipe(Effect.provide(services))
  )
})
