import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Stream } from "effect"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import { decodeHandle } from "../../../src/providers/fal-queue/Response.ts"
import { decodeHandleText, encodeHandle } from "../../../src/providers/jobs/Handle.ts"
import { request, secret } from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as FalHost from "../../harness/upstream/FalHost.ts"
import { account, services, videoRoute } from "./Hosts.ts"

const fal = account("https://queue.fal.run")
const proxy = account("http://proxy.test:8080/fal")
const id = "764cabcf-b745-4b3e-ae38-1200304cf45b"
const own = `/fal-ai/veo3.1/requests/${id}`
const model = "fal-ai/veo3.1/fast/image-to-video"

describe("the handle of a job", () => {
  const urls: ReadonlyArray<[string, typeof fal, unknown, string]> = [
    ["fal's own URL", fal, `https://queue.fal.run${own}/status`, `${own}/status`],
    ["fal's own URL behind a proxy", proxy, `https://queue.fal.run${own}/status`, `${own}/status`],
    [
      "the whole model's name",
      proxy,
      `https://queue.fal.run/${model}/requests/1/status`,
      `/${model}/requests/1/status`
    ],
    ["the proxy's own URL", proxy, `http://proxy.test:8080/fal${own}/status`, `${own}/status`],
    ["the proxy's own URL, as seen from outside", proxy, `https://proxy.test:8080/fal${own}/status`, `${own}/status`],
    ["a query", fal, `https://queue.fal.run${own}/status?logs=1`, `${own}/status?logs=1`],
    ["another host, whose path is asked for at home", fal, "https://evil.test/steal", "/steal"],
    ["no URL", fal, undefined, `${own}/status`],
    ["a number", fal, 7, `${own}/status`],
    ["a path", fal, "/steal", `${own}/status`],
    ["a script", fal, "javascript:alert(1)", `${own}/status`],
    ["a hidden slash", fal, "https://queue.fal.run/a%2f..%2fb", `${own}/status`],
    ["hidden dots", fal, "https://queue.fal.run/a/%252e%252e/b", "/a/%252e%252e/b"],
    ["something endless", fal, `https://queue.fal.run/${"a".repeat(3_000)}`, `${own}/status`]
  ]
  for (const [name, to, status_url, expected] of urls) {
    it(`asks after it where it was told to, below the account's own address: ${name}`, () => {
      const handle = decodeHandle(to, { request_id: id, status_url }, model)
      assert.strictEqual(handle?.status, expected)
      assert.strictEqual(handle?.result, own)
      assert.strictEqual(handle?.cancel, `${own}/cancel`)
      if (handle !== undefined) assert.deepStrictEqual(decodeHandleText(to, encodeHandle(handle)), Either.right(handle))
    })
  }

  it("knows the namespaces of fal's client", () => {
    const handle = decodeHandle(fal, { request_id: id }, "workflows/somebody/film")
    assert.strictEqual(handle?.result, `/workflows/somebody/film/requests/${id}`)
  })

  for (const body of [undefined, null, [], {}, { request_id: 7 }, { request_id: "" }, { request_id: ".." }]) {
    it(`is not made of ${JSON.stringify(body)}`, () => assert.isUndefined(decodeHandle(fal, body, model)))
  }

  const escapes = [
    "https://evil.test/",
    "//evil.test/x",
    "@evil.test/",
    ".evil.test/",
    ":80@evil.test/",
    "/../x",
    "/a/../../x",
    "/%2e%2e/x",
    "/a%2f..%2fx",
    "\\..\\x",
    "/a\\..\\..\\x",
    "/a b",
    "/a#b",
    "/a\nb",
    "",
    "x"
  ]
  for (const base of [fal, proxy]) {
    for (const path of escapes) {
      const stays = path === "//evil.test/x"
      it(`of ${base.baseUrl} ${stays ? "stays at home with" : "is refused for"} ${JSON.stringify(path)}`, () => {
        for (const step of ["status", "result", "cancel"]) {
          const text = JSON.stringify({ id, status: own, result: own, cancel: own, [step]: path })
          const read = decodeHandleText(base, text)
          if (!stays) assert.isTrue(Either.isLeft(read), step)
          else assert.strictEqual(new URL(`${base.baseUrl}${path}`).host, new URL(base.baseUrl).host)
        }
      })
    }
  }

  it.scopedLive("takes the credential nowhere else, whatever the answers say", () =>
    Effect.gen(function* () {
      const host = yield* FalHost.make
      let stolen = 0
      const evil = yield* Fake.serving((response) => {
        stolen += 1
        response.end()
      })
      const { video } = yield* FalQueue.make
      const route = videoRoute(host.url)
      const elsewhere = `${evil.url}/steal`
      yield* host.names({ status_url: elsewhere, response_url: `${elsewhere}/files`, cancel_url: `${evil.url}/../x` })
      const handle = yield* video?.submit(route, request()) ?? Effect.dieMessage("no videos")
      yield* Effect.ignore(video?.poll(route, handle) ?? Effect.void)
      yield* Effect.ignore(Stream.runDrain(video?.download(route, handle) ?? Stream.empty))
      yield* Effect.ignore(video?.cancel?.(route, handle) ?? Effect.void)
      const asked = [yield* host.heard("submit"), yield* host.heard("result"), yield* host.heard("result")]
      for (const { headers } of asked) assert.strictEqual(headers.authorization, `Key ${secret}`)
      assert.strictEqual(stolen, 0)
    }).pipe(Effect.provide(services))
  )
})
