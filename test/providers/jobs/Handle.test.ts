import { Effect, Either, Stream } from "effect"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import * as FalResponse from "../../../src/providers/fal-queue/FalQueue.ts"
import { decodeHandleText, encodeHandle } from "../../../src/providers/jobs/JobAdapter.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import * as ReplicateResponse from "../../../src/providers/replicate/Replicate.ts"
import { secret, services } from "../../contracts/MediaHarness.ts"
import { request } from "../../contracts/VideoHarness.ts"
import { assert, describe, it, liveOver } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as FalHost from "../fal-queue/FalHost.ts"
import { account, videoRoute } from "../fal-queue/Hosts.ts"
import { clipRoute, replicateAccount } from "../replicate/Hosts.ts"
import * as ReplicateHost from "../replicate/ReplicateHost.ts"

const fal = account("https://queue.fal.run")
const falProxy = account("http://proxy.test:8080/fal")
const falId = "764cabcf-b745-4b3e-ae38-1200304cf45b"
const falOwn = `/fal-ai/veo3.1/requests/${falId}`
const falModel = "fal-ai/veo3.1/fast/image-to-video"

const replicate = replicateAccount("https://api.replicate.com")
const replicateProxy = replicateAccount("http://proxy.test:8080/replicate")
const replicateOwn = "/v1/predictions/q1w2e3"

type Case = readonly [title: string, typeof fal, url: unknown, path: string]

const falCases: ReadonlyArray<Case> = [
  ["fal's own URL", fal, `https://queue.fal.run${falOwn}/status`, `${falOwn}/status`],
  ["fal's own URL behind a proxy", falProxy, `https://queue.fal.run${falOwn}/status`, `${falOwn}/status`],
  [
    "the whole model's name",
    falProxy,
    `https://queue.fal.run/${falModel}/requests/1/status`,
    `/${falModel}/requests/1/status`
  ],
  ["the proxy's own URL", falProxy, `http://proxy.test:8080/fal${falOwn}/status`, `${falOwn}/status`],
  ["the proxy's URL from outside", falProxy, `https://proxy.test:8080/fal${falOwn}/status`, `${falOwn}/status`],
  ["a query", fal, `https://queue.fal.run${falOwn}/status?logs=1`, `${falOwn}/status?logs=1`],
  ["another host, whose path is asked for at home", fal, "https://evil.test/steal", "/steal"],
  ["no URL", fal, undefined, `${falOwn}/status`],
  ["a number", fal, 7, `${falOwn}/status`],
  ["a path", fal, "/steal", `${falOwn}/status`],
  ["a script", fal, "javascript:alert(1)", `${falOwn}/status`],
  ["a hidden slash", fal, "https://queue.fal.run/a%2f..%2fb", `${falOwn}/status`],
  ["hidden dots", fal, "https://queue.fal.run/a/%252e%252e/b", "/a/%252e%252e/b"],
  ["something endless", fal, `https://queue.fal.run/${"a".repeat(3_000)}`, `${falOwn}/status`]
]

const replicateCases: ReadonlyArray<Case> = [
  ["Replicate's own URL", replicate, `https://api.replicate.com${replicateOwn}`, replicateOwn],
  ["Replicate's own URL behind a proxy", replicateProxy, `https://api.replicate.com${replicateOwn}`, replicateOwn],
  ["the proxy's own URL", replicateProxy, `http://proxy.test:8080/replicate${replicateOwn}`, replicateOwn],
  ["another address of the host", replicate, "https://api.replicate.com/v2/predictions/q", "/v2/predictions/q"],
  ["another host, whose path is asked for at home", replicate, "https://evil.test/steal", "/steal"],
  ["no URL", replicate, undefined, replicateOwn],
  ["a path", replicate, "/steal", replicateOwn],
  ["a script", replicate, "javascript:alert(1)", replicateOwn],
  ["a hidden slash", replicate, "https://api.replicate.com/a%2f..%2fb", replicateOwn]
]

describe("the handle of a job", () => {
  for (const [title, to, status_url, status] of falCases) {
    it(`at fal keeps its paths below the account's own address: ${title}`, () => {
      const handle = FalResponse.decodeHandle(to, { request_id: falId, status_url }, falModel)
      if (handle === undefined) return assert.fail("no handle")
      assert.deepStrictEqual(handle, { id: falId, status, result: falOwn, cancel: `${falOwn}/cancel` })
      assert.deepStrictEqual(decodeHandleText(to, encodeHandle(handle)), Either.right(handle))
    })
  }

  for (const [title, to, get, status] of replicateCases) {
    it(`at Replicate keeps its paths below the account's own address: ${title}`, () => {
      const handle = ReplicateResponse.decodeHandle(to, { id: "q1w2e3", urls: { get } })
      if (handle === undefined) return assert.fail("no handle")
      assert.deepStrictEqual(handle, { id: "q1w2e3", status, result: status, cancel: `${replicateOwn}/cancel` })
      assert.deepStrictEqual(decodeHandleText(to, encodeHandle(handle)), Either.right(handle))
    })
  }

  it("knows the namespaces of fal's client", () => {
    const handle = FalResponse.decodeHandle(fal, { request_id: falId }, "workflows/somebody/film")
    assert.strictEqual(handle?.result, `/workflows/somebody/film/requests/${falId}`)
  })

  for (const id of [undefined, 7, "", "..", "\ud800", "a\udc00b"]) {
    it(`is not made of an id that is ${JSON.stringify(id)}`, () => {
      assert.isUndefined(FalResponse.decodeHandle(fal, { request_id: id }, falModel))
      assert.isUndefined(ReplicateResponse.decodeHandle(replicate, { id, urls: { get: replicateOwn } }))
    })
  }

  for (const body of [undefined, null, []]) {
    it(`is not made of ${JSON.stringify(body)}`, () => {
      assert.isUndefined(FalResponse.decodeHandle(fal, body, falModel))
      assert.isUndefined(ReplicateResponse.decodeHandle(replicate, body))
    })
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
  for (const base of [fal, falProxy]) {
    for (const path of escapes) {
      const stays = path === "//evil.test/x"
      it(`of ${base.baseUrl} ${stays ? "stays at home with" : "is refused for"} ${JSON.stringify(path)}`, () => {
        for (const step of ["status", "result", "cancel"]) {
          const text = JSON.stringify({ id: falId, status: falOwn, result: falOwn, cancel: falOwn, [step]: path })
          if (!stays) assert.isTrue(Either.isLeft(decodeHandleText(base, text)), step)
          else assert.strictEqual(new URL(`${base.baseUrl}${path}`).host, new URL(base.baseUrl).host)
        }
      })
    }
  }
})

/** A host that collects the credentials that are sent to it. */
const thief = Effect.gen(function* () {
  const credentials: Array<string | undefined> = []
  const { url } = yield* Fake.serving((response, { headers }) => {
    credentials.push(headers.authorization)
    response.end("clip")
  })
  return { url, credentials }
})

describe("a credential goes nowhere else, whatever the responses name", () => {
  liveOver(services)("at fal", function* () {
    const host = yield* FalHost.make
    const evil = yield* thief
    const { video } = yield* FalQueue.make
    if (video?.cancel === undefined) return yield* Effect.dieMessage("no videos")
    const route = videoRoute(host.url)
    const elsewhere = `${evil.url}/steal`
    yield* host.names({ status_url: elsewhere, response_url: `${elsewhere}/files`, cancel_url: `${evil.url}/../x` })
    const handle = yield* video.submit(route, request())
    yield* Effect.ignore(video.poll(route, handle))
    yield* Effect.ignore(Stream.runDrain(video.download(route, handle)))
    yield* Effect.ignore(video.cancel(route, handle))
    for (const step of ["submit", "result", "result"] as const) {
      assert.strictEqual((yield* host.heard(step)).headers.authorization, `Key ${secret}`)
    }
    assert.deepStrictEqual(evil.credentials, [])
  })

  liveOver(services)("at Replicate", function* () {
    const host = yield* ReplicateHost.make
    const evil = yield* thief
    const { video } = yield* Replicate.make
    if (video?.cancel === undefined) return yield* Effect.dieMessage("no videos")
    const route = clipRoute(host.origin)
    yield* host.names({ get: `${evil.url}/v1/predictions/steal`, cancel: `${evil.url}/../x` })
    const handle = yield* video.submit(route, request())
    yield* Effect.ignore(video.poll(route, handle))
    yield* Effect.ignore(video.cancel(route, handle))
    assert.deepStrictEqual(evil.credentials, [])
    for (const step of ["submit", "poll", "cancel"] as const) {
      assert.strictEqual((yield* host.heard(step)).headers.authorization, `Bearer ${secret}`)
    }
    yield* host.succeeds(`${evil.url}/tmp.mp4`)
    yield* Stream.runDrain(video.download(route, handle))
    assert.deepStrictEqual(evil.credentials, [undefined])
  })
})
