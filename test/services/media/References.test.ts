import { Effect, Fiber, Layer, Option, TestClock } from "effect"
import { largestReference, type Reference } from "../../../src/domain/Media.ts"
import * as SafeFetcher from "../../../src/fetching/SafeFetcher.ts"
import { References } from "../../../src/services/media/References.ts"
import { FetcherFake, fetchFailed } from "../../fakes/FetcherFake.ts"
import { make, ranges } from "../../fetching/ForeignServer.ts"
import { gif, grown, png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"

const url = (text: string): Reference => ({ _tag: "Url", url: text })
const dot = { width: 1, height: 1 }
const bytes = (body: Uint8Array): Reference => ({ _tag: "Bytes", bytes: body })

const over = (fetcher: FetcherFake) => Effect.provide(Layer.provide(References.layer, fetcher.layer))

const params = ["image", "messages"] as const
type Param = (typeof params)[number]

const load = (references: ReadonlyArray<Reference>, param: Param = "image") =>
  Effect.flatMap(References, (service) => service.load(references, param))

const refused = (references: ReadonlyArray<Reference>, param: Param = "image") =>
  // Were one taken, its megabytes would be written out as what the test met.
  Effect.map(Effect.flip(Effect.asVoid(load(references, param))), (failure) =>
    assert.deepInclude(failure, { _tag: "InvalidRequest", message: "Failed to process the reference image.", param })
  )

describe("references", () => {
  it.effect("become pictures in their order, with the types of their bytes", () => {
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
        fetcher.calls.map(({ from, limitBytes, own }) => ({ from, limitBytes, own })),
        [0, 1].map(() => ({ from: "customer" as const, limitBytes: largestReference, own: undefined }))
      )
      assert.deepStrictEqual(yield* load([]), [])
    }).pipe(over(fetcher))
  })

  const html = Buffer.from("<!doctype html><title>Not here</title>")
  const bad: ReadonlyArray<readonly [string, Reference]> = [
    ["nothing", bytes(new Uint8Array(0))],
    ["HTML", bytes(html)],
    ["a PNG that is HTML", bytes(Buffer.concat([png.subarray(0, 8), html]))],
    ["half a PNG", bytes(png.subarray(0, png.length / 2))],
    ["more than 20 MiB", bytes(grown(largestReference + 1))],
    ["a URL of HTML", url("https://a.test/page.png")],
    ["a URL that leads nowhere", url("https://unknown.test/")],
    ...(["refused", "status", "too_large", "timeout", "network"] as const).map(
      (reason) => [`a URL that fails with ${reason}`, url(`https://a.test/${reason}`)] as const
    )
  ]
  const failing = () =>
    (["refused", "status", "too_large", "timeout", "network"] as const).reduce(
      (fetcher, reason) => fetcher.on(`https://a.test/${reason}`, Effect.fail(fetchFailed(reason))),
      new FetcherFake().on("https://a.test/page.png", html)
    )
  it.effect.each(bad)("are the customer's fault when one is %s", ([, reference]) =>
    Effect.gen(function* () {
      for (const param of params) {
        yield* refused([reference], param)
        yield* refused([bytes(png), reference, bytes(png)], param)
      }
    }).pipe(over(failing()))
  )

  it.effect("may have 20 MiB each, those of a chat 64 MiB together", () =>
    Effect.gen(function* () {
      const largest = bytes(grown(largestReference))
      assert.lengthOf(yield* load(Array.from({ length: 8 }, () => largest)), 8)
      assert.lengthOf(yield* load([largest, largest, largest], "messages"), 3)
      yield* refused([largest, largest, largest, largest], "messages")
    }).pipe(over(new FetcherFake()))
  )

  it.effect("are fetched four at a time, for 30 s in all", () => {
    const urls = Array.from({ length: 8 }, (_, index) => `https://a.test/${index}`)
    const fetcher = urls.reduce((fake, one) => fake.on(one, Effect.never), new FetcherFake())
    return Effect.gen(function* () {
      const loading = yield* Effect.fork(refused(urls.map(url)))
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
    return Effect.gen(function* () {
      const loading = yield* Effect.fork(load([url("https://a.test/never")]))
      yield* Effect.repeat(Effect.yieldNow(), { until: () => fetcher.busy.size > 0 })
      yield* Fiber.interrupt(loading)
      assert.strictEqual(fetcher.busy.size, 0)
      const other = yield* Effect.fork(refused([url("https://a.test/never"), url("https://a.test/late")]))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(other)
      assert.strictEqual(fetcher.busy.size, 0)
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
      for (const path of ["/inner", "/html"]) yield* refused([url(host.url + path)])
      yield* refused([url(inner.url)])
      assert.strictEqual(inner.connections(), 0)
    }).pipe(
      Effect.provide(
        Layer.provide(
          References.layer,
          SafeFetcher.layer({
            fetchAllow: ranges("127.0.0.1"),
            resultFetchAllow: ranges("127.0.0.2"),
            connectTimeoutSeconds: 2
          })
        )
      )
    )
  )
})
