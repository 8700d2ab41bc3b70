import { Effect, Fiber, Layer, Option, TestClock } from "effect"
import { GatewayBusy } from "../../../src/domain/Failure.ts"
import {
  explainReference,
  maxReferenceBytes,
  type Reference,
  referenceProblems,
  unusableReference
} from "../../../src/domain/Media.ts"
import * as SafeFetcher from "../../../src/fetching/SafeFetcher.ts"
import type { FetchFailed } from "../../../src/services/media/Fetcher.ts"
import { MediaStore } from "../../../src/services/media/MediaStore.ts"
import { ReferenceImages } from "../../../src/services/media/ReferenceImages.ts"
import { FetcherFake, fetchFailed } from "../../fakes/FetcherFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { make, ranges } from "../../fetching/ForeignServer.ts"
import { gif, grown, png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"

const url = (text: string): Reference => ({ _tag: "Url", url: text })
const dot = { width: 1, height: 1 }
const bytes = (body: Uint8Array): Reference => ({ _tag: "Bytes", bytes: body })

const over = (fetcher: FetcherFake, store = new MediaStoreFake()) =>
  Effect.provide(ReferenceImages.layer.pipe(Layer.provideMerge(Layer.merge(fetcher.layer, store.layer))))

const params = ["image", "messages"] as const
type Param = (typeof params)[number]

const load = (references: ReadonlyArray<Reference>, param: Param = "image") =>
  Effect.flatMap(ReferenceImages, (service) => service.load(references, param))

const refused = (references: ReadonlyArray<Reference>, problem: string, param: Param = "image", subject?: string) =>
  // Were one taken, its megabytes would be written out as what the test met.
  Effect.map(Effect.flip(Effect.asVoid(load(references, param))), (failure) =>
    assert.deepInclude(failure, {
      _tag: "InvalidRequest",
      message: unusableReference,
      hint: explainReference(problem, subject),
      param
    })
  )

describe("references", () => {
  it.effect("become images in order, with the types of their bytes", () => {
    const fetcher = new FetcherFake()
      .on("https://a.test/slow.jpg", Effect.delay(Effect.succeed(png), "10 seconds"))
      .on("http://b.test/", gif)
    return Effect.gen(function* () {
      const loading = yield* Effect.fork(
        load([url("https://a.test/slow.jpg"), bytes(gif), url("http://b.test/"), bytes(png)])
      )
      yield* TestClock.adjust("10 seconds")
      const pictures = yield* Fiber.join(loading)
      assert.deepStrictEqual(pictures, [
        { type: "image/png", bytes: png, ...dot },
        { type: "image/gif", bytes: gif, ...dot },
        { type: "image/gif", bytes: gif, ...dot },
        { type: "image/png", bytes: png, ...dot }
      ])
      assert.deepStrictEqual(
        fetcher.calls.map(({ from, limitBytes, ownOrigin: own }) => ({ from, limitBytes, own })),
        [0, 1].map(() => ({ from: "customer" as const, limitBytes: maxReferenceBytes, own: undefined }))
      )
      assert.deepStrictEqual(yield* load([]), [])
    }).pipe(over(fetcher))
  })

  const html = Buffer.from("<!doctype html><title>Not here</title>")
  const { format, large, largeTogether, network, time } = referenceProblems
  const urls = ["url", "credentials", "address", "name", "port", "redirect"] as const
  const failures: ReadonlyArray<readonly [name: string, failure: FetchFailed, problem: string]> = [
    ["refused", fetchFailed("refused"), network],
    ["status", fetchFailed("status", 404), "could not be fetched: its host returned status 404"],
    ["too_large", fetchFailed("too_large", 200), large],
    ["timeout", fetchFailed("timeout"), time],
    ["network", fetchFailed("network", 200), network],
    ...urls.map((problem) => [problem, fetchFailed("refused", 302, problem), referenceProblems[problem]] as const)
  ]
  const bad: ReadonlyArray<readonly [string, Reference, string]> = [
    ["nothing", bytes(new Uint8Array(0)), format],
    ["HTML", bytes(html), format],
    ["a PNG that is HTML", bytes(Buffer.concat([png.subarray(0, 8), html])), format],
    ["half a PNG", bytes(png.subarray(0, png.length / 2)), format],
    ["more than 20 MiB", bytes(grown(maxReferenceBytes + 1)), large],
    ["a URL of HTML", url("https://a.test/page.png"), format],
    ["a URL that leads nowhere", url("https://unknown.test/"), network],
    ...failures.map(
      ([name, , problem]) => [`a URL that fails with ${name}`, url(`https://a.test/${name}`), problem] as const
    )
  ]
  const failing = () =>
    failures.reduce(
      (fetcher, [name, failure]) => fetcher.on(`https://a.test/${name}`, Effect.fail(failure)),
      new FetcherFake().on("https://a.test/page.png", html)
    )
  it.effect.each(bad)("fail with the reason, as the customer's error, if one is %s", ([, reference, problem]) =>
    Effect.gen(function* () {
      for (const param of params) {
        yield* refused([reference], problem, param)
        yield* refused([bytes(png), reference, bytes(png)], problem, param, "Image 2 of 3")
      }
    }).pipe(over(failing()))
  )

  it.effect("that the provider fetches are checked by URL only, each separately", () =>
    Effect.gen(function* () {
      const { check } = yield* ReferenceImages
      const failed = yield* Effect.flip(check(["https://a.test/fine.png", "https://a.test/address"]))
      const hint = explainReference(referenceProblems.address, "Image 2 of 2")
      assert.deepInclude(failed, { message: unusableReference, hint, param: "messages" })
    }).pipe(over(failing()))
  )

  it.effect("may have 20 MiB each, those of a chat 64 MiB together", () =>
    Effect.gen(function* () {
      const largest = bytes(grown(maxReferenceBytes))
      assert.lengthOf(yield* load(Array.from({ length: 8 }, () => largest)), 8)
      assert.lengthOf(yield* load([largest, largest, largest], "messages"), 3)
      const problem = largeTogether(64 * 1024 * 1024)
      yield* refused([largest, largest, largest, largest], problem, "messages", "Image 4 of 4")
    }).pipe(over(new FetcherFake()))
  )

  it.effect("are fetched four at a time, for 30 s in all", () => {
    const urls = Array.from({ length: 8 }, (_, index) => `https://a.test/${index}`)
    const fetcher = urls.reduce((fake, one) => fake.on(one, Effect.never), new FetcherFake())
    return Effect.gen(function* () {
      const loading = yield* Effect.fork(refused(urls.map(url), time, "image", "One of the images"))
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual([fetcher.mostBusy, fetcher.busy.size], [4, 4])
      assert.isTrue(Option.isNone(yield* Fiber.poll(loading)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(loading)
      assert.deepStrictEqual([fetcher.calls.length, fetcher.busy.size], [4, 0])
    }).pipe(over(fetcher))
  })

  it.effect("are interrupted with the request, and when another one fails", () => {
    const fetcher = new FetcherFake()
      .on("https://a.test/never", Effect.never)
      .on("https://a.test/late", Effect.delay(fetchFailed("status", 404), "1 second"))
    const problem = "could not be fetched: its host returned status 404"
    return Effect.gen(function* () {
      const loading = yield* Effect.fork(load([url("https://a.test/never")]))
      yield* Effect.repeat(Effect.yieldNow(), { until: () => fetcher.busy.size > 0 })
      yield* Fiber.interrupt(loading)
      assert.strictEqual(fetcher.busy.size, 0)
      const other = yield* Effect.fork(
        refused([url("https://a.test/never"), url("https://a.test/late")], problem, "image", "Image 2 of 2")
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(other)
      assert.strictEqual(fetcher.busy.size, 0)
    }).pipe(over(fetcher))
  })

  it.effect("at the gateway's own address are read from the media store, not over the network", () => {
    const fetcher = new FetcherFake()
    const store = new MediaStoreFake()
    const [publicName, privateName] = ["public", "private"].map((folder) => `${folder}/${"x".repeat(32)}.png`)
    return Effect.gen(function* () {
      const { link, put, remove } = yield* MediaStore
      const keep = (type: "image/png" | "video/mp4", body: Uint8Array) => put({ type, visibility: "public", body })
      const own = yield* keep("image/png", png)
      const picture = { type: "image/png" as const, bytes: png, ...dot }
      assert.deepStrictEqual(yield* load([url(link(own)), url(`${link(own)}?width=9`)]), [picture, picture])
      yield* refused([url(link(yield* keep("video/mp4", png)))], format)
      const heavy = yield* keep("image/png", grown(maxReferenceBytes + 1))
      yield* refused([bytes(png), url(link(heavy))], large, "messages", "Image 2 of 2")
      yield* refused([url(link(publicName ?? ""))], referenceProblems.stored)
      yield* remove(own)
      yield* refused([url(link(own))], referenceProblems.stored)
      assert.deepStrictEqual(fetcher.calls, [])
      // To the fetcher it is any other URL.
      yield* refused([url(`http://media.test/${privateName}`)], network)
      assert.lengthOf(fetcher.calls, 1)
    }).pipe(over(fetcher, store))
  })

  it.effect("reserve memory for fetched images, as base64 in a chat, and fail without memory", () => {
    const fetcher = new FetcherFake().on("https://a.test/", gif)
    return Effect.gen(function* () {
      const { link, put } = yield* MediaStore
      const { loadWithin } = yield* ReferenceImages
      const own = url(link(yield* put({ type: "image/png", visibility: "public", body: png })))
      const reserved: Array<number> = []
      const reserve = (more: number) => Effect.sync(() => void reserved.push(more))
      yield* loadWithin(reserve, [own, bytes(png), url("https://a.test/")], "image")
      assert.sameMembers(reserved.splice(0), [png.length, gif.length])
      yield* loadWithin(reserve, [own], "messages")
      assert.deepStrictEqual(reserved, [4 * Math.ceil(png.length / 3)])
      const busy = () => new GatewayBusy()
      for (const reference of [own, url("https://a.test/")]) {
        assert.strictEqual((yield* Effect.flip(loadWithin(busy, [reference], "image")))._tag, "GatewayBusy")
      }
      assert.lengthOf(yield* loadWithin(busy, [bytes(png)], "image"), 1)
    }).pipe(over(fetcher))
  })

  it.scopedLive("are fetched from an exempt address", () =>
    Effect.gen(function* () {
      const inner = yield* make((_, response) => response.end(png), { address: "127.0.0.2" })
      const host = yield* make((request, response) => {
        if (request.url === "/inner") response.writeHead(302, { location: inner.url }).end()
        else if (request.url === "/html") response.writeHead(200, { "content-type": "image/png" }).end("<html>")
        else response.writeHead(200, { "content-type": "text/html" }).end(png)
      })
      assert.deepStrictEqual(yield* load([url(`${host.url}/picture`)]), [{ type: "image/png", bytes: png, ...dot }])
      yield* refused([url(`${host.url}/inner`)], referenceProblems.address)
      yield* refused([url(`${host.url}/html`)], format)
      yield* refused([url(inner.url)], referenceProblems.address)
      assert.strictEqual(inner.connections(), 0)
    }).pipe(
      Effect.provide(
        Layer.provide(ReferenceImages.layer, [
          new MediaStoreFake().layer,
          SafeFetcher.layer({
            fetchAllow: ranges("127.0.0.1"),
            resultFetchAllow: ranges("127.0.0.2"),
            connectTimeoutSeconds: 2
          })
        ])
      )
    )
  )
})
