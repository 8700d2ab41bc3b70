import { Effect } from "effect"
import OpenAI, { toFile } from "openai"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, rateOf, refusals } from "../../harness/client/HttpCalls.ts"
import { calling } from "../../harness/client/OfficialClients.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { filePart, formOf, formType, textPart } from "../body/Forms.ts"
import { gif, gifBytes } from "../images/ImageBodies.ts"
import { lastVideo, layer, MediaServer, videos as path, post } from "../MediaServer.ts"

const baseBody = { model: "film", prompt: "a cat runs" }
const file = { _tag: "Bytes", bytes: gifBytes } as const

withLayer(layer)("a video", (it) => {
  it.effect("is requested with exactly what the body says", function* () {
    const account = yield* openAccount({})
    yield* post(account, path, baseBody)
    const { params, idempotencyKey, model, record, seconds } = yield* lastVideo
    assert.deepStrictEqual(params, { ...baseBody, seconds: undefined, references: [], webhookUrl: undefined })
    assert.isUndefined(idempotencyKey)
    assert.deepStrictEqual([model.id, seconds], ["film", 8])
    assert.deepStrictEqual(
      [record.summary.surface, record.summary.model, record.summary.caller.org, record.summary.caller.key],
      ["video", "film", account.org, account.key]
    )
  })

  it.effect("has no lone surrogate in its prompt", function* () {
    const account = yield* openAccount({})
    yield* post(account, path, String.raw`{"model":"film","prompt":"cut \ud83d, whole \ud83d\ude00"}`)
    assert.strictEqual((yield* lastVideo).params.prompt, "cut \ufffd, whole 😀")
  })

  it.effect.each<readonly [body: object, seconds: number]>([
    [{ seconds: 7 }, 6],
    [{ seconds: "100" }, 8],
    [{ seconds: -1 }, 4],
    [{ seconds: 1e300 }, 8],
    [{ duration: 4 }, 4],
    [{ duration: 4, seconds: 6 }, 6],
    [{ model: "framed", input_reference: gif }, 5],
    [{ model: "bare", seconds: 20 }, 6]
  ])("has one of its model's lengths when %j is sent", function* ([body, seconds]) {
    const account = yield* openAccount({})
    const { text } = yield* post(account, path, { ...baseBody, ...body })
    assert.strictEqual((yield* lastVideo).seconds, seconds)
    assert.include(text, `"seconds":${seconds}`)
  })

  it.effect("is answered exactly as queued", function* () {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({ rpm: 5 })
    const { id, createdAt } = videos.put(account.org)
    videos.script(Effect.succeed({ video: videos.put(account.org, { id, createdAt }), replayed: false }))
    const { headers, status, text } = yield* post(account, path, baseBody)
    assert.strictEqual(status, 202)
    const expectedJson = `{"id":"${id}","object":"video","model":"film","status":"queued","progress":0,"created_at":${createdAt},"seconds":8}`
    assert.strictEqual(text, expectedJson)
    assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
    assert.isNull(headers.get("idempotency-replayed"))
    assert.isNull(headers.get("x-gateway-sandbox"))
  })

  it.effect("takes a rate unit for each request", function* () {
    const { videos } = yield* MediaServer
    const before = videos.jobs.length
    const account = yield* openAccount({ rpm: 3 })
    for (const [index, body] of [baseBody, "{", { ...baseBody, model: "nobody" }].entries()) {
      const answer = yield* post(account, path, body)
      assert.isBelow(answer.status, 405)
      assert.deepStrictEqual(rateOf(answer), { limit: 3, remaining: 2 - index })
    }
    const over = yield* post(account, path, baseBody)
    assertRefused(over, refusals.limited)
    assert.deepStrictEqual(rateOf(over), { limit: 3, remaining: 0 })
    assert.lengthOf(videos.jobs, before + 1)
  })

  it.effect("is marked where it is a replay", function* () {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    videos.script(Effect.succeed({ video: videos.put(account.org), replayed: true }))
    const { headers, status } = yield* post(account, path, baseBody)
    assert.strictEqual(status, 202)
    assert.strictEqual(headers.get("idempotency-replayed"), "true")
  })

  it.effect("is marked where the sandbox makes it", function* () {
    const { videos } = yield* MediaServer
    const account = yield* openAccount({})
    const dreamt = yield* post(account, path, { ...baseBody, model: "made-up" })
    videos.script(Effect.succeed({ video: videos.put(account.org, { sandbox: true }), replayed: false }))
    for (const { headers } of [dreamt, yield* post(account, path, baseBody)]) {
      assert.strictEqual(headers.get("x-gateway-sandbox"), "true")
    }
  })

  it.effect("is the same request in JSON and in a form", function* () {
    const account = yield* openAccount({})
    yield* post(account, path, { ...baseBody, seconds: 6, image: [gif] })
    const { params } = yield* lastVideo
    yield* post(account, path, { ...baseBody, seconds: "6", input_reference: { image_url: gif } })
    assert.deepStrictEqual((yield* lastVideo).params, params)
    const fields = { ...baseBody, seconds: "6" }
    const parts = Object.entries(fields).map(([name, value]) => textPart(name, value))
    for (const boundary of ["first", "second"]) {
      const form = formOf([...parts, filePart("input_reference", gifBytes)], boundary)
      const { status } = yield* post(account, path, form, { headers: { "content-type": formType(boundary) } })
      assert.strictEqual(status, 202)
      assert.deepStrictEqual((yield* lastVideo).params, params)
    }
  })

  it.effect("is created by the official client, which sends forms", function* () {
    const { url } = yield* MediaServer
    const { secret } = yield* openAccount({})
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: secret, maxRetries: 0 })
    const upload = yield* Effect.promise(() => toFile(gifBytes, "图.gif", { type: "image/gif" }))
    const link = { _tag: "Url", url: "https://a.test/a.png" } as const
    for (const [reference, expected] of [
      [undefined, []],
      [upload, [file]],
      [{ image_url: link.url }, [link]],
      [{ image_url: `data:image/gif;base64,${gif}` }, [file]]
    ] as const) {
      const video = yield* calling(() =>
        openai.videos.create(
          {
            ...baseBody,
            seconds: "8",
            size: "1280x720",
            ...(reference === undefined ? {} : { input_reference: reference })
          },
          { headers: { "Idempotency-Key": "k" } }
        )
      )
      assert.deepStrictEqual([video.object, video.status, Number(video.seconds)], ["video", "queued", 8])
      const { params, idempotencyKey } = yield* lastVideo
      assert.deepStrictEqual(params, { ...baseBody, seconds: 8, references: expected, webhookUrl: undefined })
      assert.strictEqual(idempotencyKey, "k")
    }
  })
})
