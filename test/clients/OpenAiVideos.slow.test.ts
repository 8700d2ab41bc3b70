import { SqlClient } from "@effect/sql"
import { Effect, Schema, Struct } from "effect"
import OpenAI, { toFile } from "openai"
import { NanoUsd, toUsd } from "../../src/domain/Money.ts"
import { badRequest, callAt, refusals } from "../harness/client/HttpCalls.ts"
import { assertLinked, assertStates, pollUntilFinished, Video } from "../harness/client/MediaClient.ts"
import { asJson, assertClientError, calling, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import { painting } from "../harness/upstream/Replies.ts"
import { parse } from "../providers/sandbox/Mp4.ts"
import { plain } from "../providers/sandbox/PictureSamples.ts"

const gateway = Served.layer(
  Effect.map(freePort, (port) => ({ env: { SANDBOX: "true", PORT: String(port) }, timings: earlyPolls }))
)

const model = "veo-3.1-lite-generate-preview"
/** Nano-USD a second. */
const price = 50_000_000n
/** It makes clips of six seconds. */
const fromFrames = "hailuo-2.3"
const flatPrice = 280_000_000n

const decoded = Schema.decodeUnknown(Video, { onExcessProperty: "error" })

const retrieved = (openai: OpenAI, id: string) =>
  Effect.flatMap(
    calling(() => openai.videos.retrieve(id)),
    (video) => decoded(asJson(video))
  )

/** What the database still knows of what its customer wrote. */
const remembered = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`SELECT prompt, handle, reference, reference_url FROM videos WHERE id = ${id}`
})

const downloaded = (openai: OpenAI, id: string) =>
  calling(async () => {
    const response = await openai.videos.downloadContent(id)
    return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) }
  })

/** A render is asked for and waited for; its clip. */
const clipOf = Effect.fnUntraced(function* (openai: OpenAI, body: OpenAI.VideoCreateParams) {
  const { id } = yield* calling(() => openai.videos.create(body))
  assertStates(yield* pollUntilFinished(retrieved(openai, id)), "completed")
  return (yield* downloaded(openai, id)).bytes
})

const assertPlays = (bytes: Uint8Array, seconds: number) => {
  const { boxes, movie, samples } = parse(bytes)
  assert.includeMembers(boxes.map(Struct.get("type")), ["ftyp", "moov", "mdat"])
  assert.strictEqual(boxes.at(-1)?.end, bytes.length)
  assert.strictEqual(movie.duration, seconds * movie.timescale)
  assert.lengthOf(movie.videoTracks, 1)
  assert.isAbove(samples.length, seconds)
  for (const { offset, size } of samples) assert.isAtMost(offset + size, bytes.length)
}

withLayer(gateway)("the official client with the sandbox's videos", (it) => {
  it.effect("creates, reads, lists and downloads a playable video", function* () {
    const { funds, openai, spent } = yield* Served.customer({ rpm: 7 })
    const asked = { model, prompt: "Grüße 👋", seconds: "4" } as const
    const { data, response } = yield* calling(() => openai.videos.create(asked).withResponse())
    assert.strictEqual(response.status, 202)
    assert.strictEqual(response.headers.get("x-gateway-sandbox"), "true")
    assert.strictEqual(response.headers.get("x-ratelimit-remaining"), "6")
    const { created_at, id } = data
    assert.match(id, /^vid_/)
    const shown = { id, object: "video", model, created_at, seconds: 4 }
    assert.deepStrictEqual(asJson(data), { ...shown, status: "queued", progress: 0 })
    assert.strictEqual((yield* funds).held, 4n * price)

    assertStates(yield* pollUntilFinished(retrieved(openai, id)), "completed")
    const { completed_at = 0, url = "", ...rest } = yield* retrieved(openai, id)
    const charge_usd = toUsd(NanoUsd(4n * price))
    assert.deepStrictEqual<unknown>(rest, { ...shown, status: "completed", progress: 100, data: [{ url }], charge_usd })
    assert.isAtLeast(completed_at, created_at)
    assert.strictEqual(yield* spent, 4n * price)
    assert.deepStrictEqual(yield* remembered(id), [{ prompt: "", handle: null, reference: null, referenceUrl: null }])

    const { bytes, headers, status } = yield* downloaded(openai, id)
    assert.deepStrictEqual([status, headers.get("content-type")], [200, "video/mp4"])
    assertPlays(bytes, 4)
    yield* assertLinked(url, bytes, "video/mp4")

    const later = yield* calling(() => openai.videos.create({ model, prompt: "Later" }))
    const { items } = yield* drained(openai.videos.list())
    assert.deepStrictEqual(items.map(Struct.get("id")), [later.id, id])
    const { data: newest } = yield* calling(() => openai.videos.list({ limit: 1 }))
    assert.deepStrictEqual(newest.map(Struct.get("id")), [later.id])

    const unfinished = yield* thrownBy(() => openai.videos.delete(later.id))
    assertClientError(unfinished, refusals.notFinished)
    assert.deepStrictEqual<unknown>(asJson(yield* calling(() => openai.videos.delete(id))), {
      id,
      object: "video.deleted",
      deleted: true
    })
    assertClientError(yield* thrownBy(() => openai.videos.delete(id)), refusals.noVideo)
    assertClientError(yield* thrownBy(() => openai.videos.retrieve(id)), refusals.noVideo)
    assert.strictEqual((yield* callAt(url)).status, 404)
    const left = yield* drained(openai.videos.list({ limit: 1, order: "asc" }))
    assert.deepStrictEqual(left.items.map(Struct.get("id")), [later.id])
    assertStates(yield* pollUntilFinished(retrieved(openai, later.id)), "completed")
    assert.strictEqual(yield* spent, 12n * price)
  })

  it.effect("sends the reference as a file, as a data URL or not at all", function* () {
    const { openai, spent } = yield* Served.customer()
    const { bytes: red } = plain("#ff0000", 64, 36)
    const link = `data:image/png;base64,${Buffer.from(red).toString("base64")}`
    const asked = { model: fromFrames, prompt: "It moves", seconds: "8" } as const
    const file = yield* calling(() => toFile(red, "red.png", { type: "image/png" }))
    const other = yield* calling(() => toFile(painting, "other.png", { type: "image/png" }))
    const [filed, linked, another] = yield* Effect.all(
      [
        clipOf(openai, { ...asked, input_reference: file }),
        clipOf(openai, { ...asked, input_reference: { image_url: link } }),
        clipOf(openai, { ...asked, input_reference: other })
      ],
      { concurrency: "unbounded" }
    )
    assertPlays(filed, 6)
    assert.isTrue(filed.equals(linked), "a link of data shows another picture")
    assert.isFalse(filed.equals(another), "every picture is the same")
    assert.strictEqual(yield* spent, 3n * flatPrice)

    const error = yield* thrownBy(() => openai.videos.create(asked))
    const message = `Text-to-video is not available for \`${fromFrames}\` - a reference image is required.`
    assertClientError(error, badRequest(message))
    const text = yield* calling(() => toFile(Buffer.from("no picture"), "a.png", { type: "image/png" }))
    const unread = yield* thrownBy(() => openai.videos.create({ ...asked, input_reference: text }))
    assertClientError(unread, refusals.unusable("The image is not a complete PNG, JPEG, WebP or GIF."))
  })

  it.effect("gets the first video again under its idempotency key", function* () {
    const { funds, openai } = yield* Served.customer()
    const ask = (prompt: string) =>
      openai.videos
        .create({ model, prompt, seconds: "8" }, { headers: { "idempotency-key": "retry-1" } })
        .withResponse()
    const first = yield* calling(() => ask("A red fox"))
    const again = yield* calling(() => ask("A red fox"))
    assert.deepStrictEqual(asJson(again.data), asJson(first.data))
    assert.deepStrictEqual(
      [first, again].map(({ response }) => response.headers.get("idempotency-replayed")),
      [null, "true"]
    )
    assert.strictEqual((yield* funds).held, 8n * price)
    const message = "This `Idempotency-Key` was used with a different request."
    assertClientError(yield* thrownBy(() => ask("A green fox")), badRequest(message))
  })

  it.effect("gets an error for an invalid request and pays nothing", function* () {
    const { openai, spent } = yield* Served.customer()
    const stranger = yield* Served.customer()
    for (const look of [
      (id: string) => openai.videos.retrieve(id),
      (id: string) => openai.videos.downloadContent(id)
    ]) {
      assertClientError(yield* thrownBy(() => look("vid_nobody")), refusals.noVideo)
    }
    const moderated = yield* thrownBy(() => openai.videos.create({ model, prompt: "[sandbox moderation]" }))
    assertClientError(moderated, refusals.moderated)
    assert.strictEqual(yield* spent, 0n)
    assert.isEmpty((yield* drained(openai.videos.list())).items)

    const { id } = yield* calling(() => openai.videos.create({ model, prompt: "[sandbox fail]" }))
    const early = yield* thrownBy(() => openai.videos.downloadContent(id))
    assertClientError(early, badRequest("The video is not completed."))
    assertClientError(yield* thrownBy(() => stranger.openai.videos.retrieve(id)), refusals.noVideo)
    const refused = yield* calling(() => openai.videos.create({ model, prompt: "[sandbox fail moderation]" }))
    const ends = yield* Effect.forEach([id, refused.id], (one) => pollUntilFinished(retrieved(openai, one)), {
      concurrency: "unbounded"
    })
    for (const states of ends) assertStates(states, "failed")
    const errors = yield* Effect.forEach([id, refused.id], (one) => retrieved(openai, one))
    assert.deepStrictEqual(
      errors.map(({ error }) => error),
      [
        { code: "upstream_error", message: "The upstream provider returned an error." },
        { code: "content_policy_violation", message: "Content was rejected by the moderation system." }
      ]
    )
    const late = yield* thrownBy(() => openai.videos.downloadContent(id))
    assertClientError(late, badRequest("The video is not completed."))
    assert.strictEqual(yield* spent, 0n)
  })
})
