import { Effect, Exit, Fiber, Option, TestClock } from "effect"
import type { ChatRequest, Part } from "../../../src/domain/Chat.ts"
import { explainReference, referenceProblems, unusableReference } from "../../../src/domain/Media.ts"
import { FetcherFake, fetchFailed } from "../../fakes/FetcherFake.ts"
import { MediaStoreFake } from "../../fakes/MediaStoreFake.ts"
import { fails, failure, hangs, ProviderFake, request, route } from "../../fakes/ProviderFake.ts"
import { dataUrl, gif, grown, png } from "../../harness/fixtures/TinyMedia.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { bench, urlsIn, world } from "./PicturedChat.ts"

/** Routes that fetch pictures by themselves, and routes that fetch none. */
const a = route("a")
const inlineB = route("b", { options: { inline: true } })
const inlineC = route("c", { options: { inline: true } })

const image = (url: string): Part => ({ type: "image_url", image_url: { url, detail: "low" } })
const text: Part = { type: "text", text: "look" }
const showing = (...urls: ReadonlyArray<string>): ChatRequest =>
  request({
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: [text, ...urls.map(image)] },
      { role: "user", content: "what is it?" }
    ]
  })

const assertRefused = (failure: unknown, problem: string, subject: string) =>
  assert.deepInclude(failure, {
    _tag: "InvalidRequest",
    message: unusableReference,
    hint: explainReference(problem, subject),
    param: "messages"
  })

describe("an image in a chat", () => {
  it.effect("that is valid goes to the provider as it came", () => {
    const { brought, fetcher, run } = world()
    const urls = [dataUrl(png, "image/png"), dataUrl(gif, "image/gif"), "https://a.test/1.png"]
    return Effect.gen(function* () {
      const { complete, ended, stream } = yield* bench([a], showing(...urls))
      yield* complete
      yield* stream
      assert.deepStrictEqual(brought, [
        ["a", urls],
        ["a", urls]
      ])
      assert.deepStrictEqual(ended, ["open", "finish"])
      assert.deepStrictEqual(fetcher.calls, [])
    }).pipe(run)
  })

  it.effect("goes to every route under the type that its bytes have", () => {
    const { brought, run } = world(new ProviderFake().on(a, fails(failure("retry", 503))))
    const base64 = png.toString("base64")
    const prefixes = ["image/svg+xml", "image/gif", "image/jpg", "IMAGE/PNG", "image/png;charset=utf-8"]
    const urls = [...prefixes.map((type) => `data:${type};base64,${base64}`), `DATA:image/png;BASE64,${base64}`]
    const right = urls.map(() => dataUrl(png, "image/png"))
    return Effect.gen(function* () {
      const { complete } = yield* bench([a, inlineB], showing(...urls))
      yield* complete
      assert.deepStrictEqual(brought, [
        ["a", right],
        ["b", right]
      ])
    }).pipe(run)
  })

  it.effect("is not copied if its type is correct", () => {
    const { requests, run } = world()
    const asked = showing(dataUrl(png, "image/png"))
    return Effect.gen(function* () {
      yield* (yield* bench([a], asked)).complete
      assert.strictEqual(requests[0]?.messages, asked.messages)
    }).pipe(run)
  })

  const { format, large } = referenceProblems
  const bad: ReadonlyArray<readonly [what: string, url: string, problem: string]> = [
    ["HTML", dataUrl(Buffer.from("<html></html>"), "image/png"), format],
    ["SVG", dataUrl(Buffer.from("<svg/>"), "image/svg+xml"), format],
    ["a PNG cut short", dataUrl(png.subarray(0, -1), "image/png"), format],
    ["no base64", "data:image/png;base64,%%%%", format],
    ["more than 20 MiB", dataUrl(grown(20 * 1024 * 1024 + 1), "image/png"), large]
  ]
  it.effect.each(bad)("that is invalid reaches no provider and costs nothing: %s", ([, url, problem]) => {
    const { brought, run } = world()
    return Effect.gen(function* () {
      const { complete, ended, free, stream } = yield* bench([a], showing(dataUrl(gif, "image/gif"), url))
      assertRefused(yield* Effect.flip(complete), problem, "Image 2 of 2")
      assertRefused(yield* Effect.flip(stream), problem, "Image 2 of 2")
      assert.deepStrictEqual([brought, ended], [[], []])
      yield* free
    }).pipe(run)
  })

  it.effect("is checked only after its hold was placed", () => {
    const { fetcher, run } = world()
    return Effect.gen(function* () {
      const { complete } = yield* bench([inlineB], showing("https://a.test/1.png", "data:image/png;base64,AAAA"), 1n)
      assert.strictEqual((yield* Effect.flip(complete))._tag, "InsufficientCredits")
      assert.deepStrictEqual(fetcher.calls, [])
    }).pipe(run)
  })
})

describe("the URL of an image", () => {
  const one = "https://a.test/1"
  const two = "https://a.test/2"
  const fetching = () => new FetcherFake().on(one, png).on(two, gif)
  const asked = showing(one, two, one, dataUrl(gif, "image/gif"))
  const inlined = [png, gif, png, gif].map((bytes) => dataUrl(bytes, bytes === png ? "image/png" : "image/gif"))
  const busy = fails(failure("retry", 503))

  it.effect("is fetched once and becomes a data URL for routes that inline images", () => {
    const provider = new ProviderFake().on(inlineB, busy).on(a, busy)
    const { brought, fetcher, run } = world(provider, fetching())
    return Effect.gen(function* () {
      const { complete } = yield* bench([inlineB, a, inlineC], asked)
      yield* complete
      assert.deepStrictEqual(brought, [
        ["b", inlined],
        ["a", urlsIn(asked)],
        ["c", inlined]
      ])
      assert.deepStrictEqual(fetcher.calls.map(({ url }) => url).toSorted(), [one, two])
    }).pipe(run)
  })

  it.effect("becomes a data URL for a stream too", () => {
    const { brought, run } = world(new ProviderFake().on(inlineB, busy), fetching())
    return Effect.gen(function* () {
      const { ended, stream } = yield* bench([inlineB, a], asked)
      yield* stream
      assert.deepStrictEqual(brought, [
        ["b", inlined],
        ["a", urlsIn(asked)]
      ])
      assert.deepStrictEqual(ended, ["open", "finish"])
    }).pipe(run)
  })

  it.effect("keeps its position among the other parts", () => {
    const { requests, run } = world(undefined, fetching())
    return Effect.gen(function* () {
      const { complete } = yield* bench([inlineB], showing(two))
      yield* complete
      assert.deepStrictEqual(requests[0]?.messages, showing(dataUrl(gif, "image/gif")).messages)
    }).pipe(run)
  })

  it.effect("that is not an image is refused as invalid", () => {
    const fetcher = new FetcherFake().on(one, png).on(two, fetchFailed("refused", undefined, "address"))
    const { brought, run } = world(undefined, fetcher)
    return Effect.gen(function* () {
      const { complete, ended, free, stream } = yield* bench([inlineB, a], asked)
      assertRefused(yield* Effect.flip(complete), referenceProblems.address, "Image 2 of 4")
      assertRefused(yield* Effect.flip(stream), referenceProblems.address, "Image 2 of 4")
      assert.deepStrictEqual([brought, ended], [[], []])
      yield* free
    }).pipe(run)
  })

  it.effect("at the gateway's own address is read from the media store for every route", () => {
    const store = new MediaStoreFake()
    const name = `public/${"x".repeat(32)}.png`
    store.files.set(name, png)
    const own = `http://media.test/${name}`
    const { brought, fetcher, run } = world(new ProviderFake().on(a, busy), fetching(), store)
    return Effect.gen(function* () {
      yield* (yield* bench([a, inlineB], showing(own, one))).complete
      const read = dataUrl(png, "image/png")
      assert.deepStrictEqual(brought, [
        ["a", [read, one]],
        ["b", [read, read]]
      ])
      assert.deepStrictEqual(
        fetcher.calls.map(({ url }) => url),
        [one]
      )
      store.files.delete(name)
      assertRefused(
        yield* Effect.flip((yield* bench([a], showing(own, one))).complete),
        referenceProblems.stored,
        "Image 1 of 2"
      )
    }).pipe(run)
  })

  const picture = `public/${"x".repeat(32)}.png`
  const link = `http://media.test/${picture}`
  const data = png.toString("base64")
  const argument = { type: "image", source: { type: "url", url: link }, image_url: link }
  const natives = [
    {
      dialect: "messages",
      body: {
        system: [{ type: "text", text: link }],
        messages: [
          { role: "user", content: [{ type: "image", source: { type: "url", url: link }, cache_control: {} }] },
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "draw", input: argument }] },
          {
            role: "user",
            content: [{ type: "tool_result", content: [{ type: "image", source: { type: "url", url: link } }] }]
          }
        ]
      },
      sent: {
        system: [{ type: "text", text: link }],
        messages: [
          {
            role: "user",
            content: [{ type: "image", source: { type: "base64", media_type: "image/png", data }, cache_control: {} }]
          },
          { role: "assistant", content: [{ type: "tool_use", id: "t", name: "draw", input: argument }] },
          {
            role: "user",
            content: [
              {
                type: "tool_result",
                content: [{ type: "image", source: { type: "base64", media_type: "image/png", data } }]
              }
            ]
          }
        ]
      }
    },
    {
      dialect: "responses",
      body: {
        input: [
          { role: "user", content: [{ type: "input_image", image_url: link, detail: "low" }] },
          { type: "function_call_output", output: [{ type: "input_image", image_url: link }] },
          { type: "function_call", arguments: link }
        ]
      },
      sent: {
        input: [
          {
            role: "user",
            content: [{ type: "input_image", image_url: dataUrl(png, "image/png"), detail: "low" }]
          },
          { type: "function_call_output", output: [{ type: "input_image", image_url: dataUrl(png, "image/png") }] },
          { type: "function_call", arguments: link }
        ]
      }
    }
  ] as const

  it.effect.each(natives)(
    "at the gateway's own address is replaced in a native body too",
    ({ body, dialect, sent }) => {
      const store = new MediaStoreFake()
      store.files.set(picture, png)
      const { requests, run } = world(undefined, undefined, store)
      const asked = { ...showing(link), native: { dialect, body, headers: {}, extraTokens: 0 } }
      return Effect.gen(function* () {
        yield* (yield* bench([a], asked)).complete
        assert.deepStrictEqual(requests[0]?.native?.body, sent)
      }).pipe(run)
    }
  )

  it.effect("is one of at most 32 that are fetched", () => {
    const urls = Array.from({ length: 33 }, (_, index) => `https://a.test/${index}`)
    const fetcher = urls.reduce((fake, url) => fake.on(url, gif), new FetcherFake())
    const { run } = world(undefined, fetcher)
    return Effect.gen(function* () {
      yield* (yield* bench([inlineB], showing(...urls.slice(1)))).complete
      assert.lengthOf(fetcher.calls, 32)
      const failed = yield* Effect.flip((yield* bench([inlineB], showing(...urls))).complete)
      assert.deepInclude(failed, {
        message: "At most 32 different image URLs can be fetched for one request.",
        param: "messages"
      })
      assert.lengthOf(fetcher.calls, 32)
      yield* (yield* bench([a], showing(...urls))).complete
    }).pipe(run)
  })

  it.effect("is fetched within the request's deadline", () => {
    const fetcher = new FetcherFake().on(one, Effect.delay(Effect.succeed(png), "20 seconds"))
    const { run } = world(new ProviderFake().on(inlineB, hangs), fetcher)
    return Effect.gen(function* () {
      const { complete, free } = yield* bench([inlineB], showing(one))
      const work = yield* Effect.fork(Effect.flip(complete))
      yield* TestClock.adjust("289 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.poll(work)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(work))._tag, "TimedOut")
      yield* free
    }).pipe(run)
  })

  it.effect("is no longer fetched when its client disconnects or the gateway stops", () => {
    const fetcher = new FetcherFake().on(one, Effect.never)
    const { brought, run } = world(undefined, fetcher)
    const begun = Effect.repeat(Effect.yieldNow(), { until: () => fetcher.busy.size > 0 })
    return Effect.gen(function* () {
      const { complete, departure, ended, free, stream } = yield* bench([inlineB], showing(one))
      const stopped = yield* Effect.fork(complete)
      yield* begun
      yield* Fiber.interrupt(stopped)
      assert.strictEqual(fetcher.busy.size, 0)
      const left = yield* Effect.fork(stream)
      yield* begun
      departure.leave()
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(left)))
      assert.deepStrictEqual([fetcher.busy.size, brought, ended], [0, [], []])
      yield* free
    }).pipe(run)
  })
})
