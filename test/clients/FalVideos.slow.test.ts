import { LLMock } from "@copilotkit/aimock"
import { Context, Effect, Layer, Struct } from "effect"
import { toFile } from "openai"
import { toUsd } from "../../src/domain/Money.ts"
import { bearer, call, refusals } from "../harness/client/HttpCalls.ts"
import { assertLinked, assertStates, fetched, pollUntilFinished, videoOf } from "../harness/client/MediaClient.ts"
import { asJson, assertClientError, calling, thrownBy } from "../harness/client/OfficialClients.ts"
import { tinyClip } from "../harness/fixtures/TinyMedia.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { priceOf, videoCatalog } from "../harness/upstream/RenderFarm.ts"
import { painting } from "../harness/upstream/Replies.ts"
import { parse } from "../providers/sandbox/Mp4.ts"

/** What is rendered at: a farm of our own, and aimock's, whose clips lie elsewhere. */
class Hosts extends Context.Tag("test/Hosts")<
  Hosts,
  { readonly farm: RenderFarm.RenderFarm; readonly mock: LLMock; readonly files: Fake.FakeUpstream }
>() {}

const fate = (account: string, prompt: string): RenderFarm.Fate => {
  const usual = { submit: "taken", polls: 2, end: "clip" } as const
  if (prompt === "rejected") return { ...usual, submit: "moderation" }
  if (prompt === "moderated") return { ...usual, end: "moderation" }
  if (account !== "a") return usual
  if (prompt === "broken") return { ...usual, polls: 3, stumble: 1, end: "runner" }
  return prompt === "busy" ? { ...usual, submit: "refused" } : usual
}

const hosts = Layer.scoped(
  Hosts,
  Effect.gen(function* () {
    const farm = yield* RenderFarm.make({ fate })
    const files = yield* Fake.make
    const mock = yield* Effect.acquireRelease(
      Effect.promise(() =>
        LLMock.create({
          port: 0,
          auth: { apiKeys: ["hush"] },
          falQueue: { pollsBeforeInProgress: 1, pollsBeforeCompleted: 2 }
        })
      ),
      (started) => Effect.promise(() => started.stop())
    )
    return { farm, files, mock }
  })
)

const gateway = Served.layer(
  Effect.gen(function* () {
    const { farm, mock } = yield* Hosts
    const headers = { "x-fal-target-host": "queue.fal.run" }
    return {
      catalog: videoCatalog(farm.url, { aimock: { base_url: `${mock.url}/fal`, headers } }),
      env: {
        FARM_KEY: "hush",
        PORT: String(yield* freePort),
        FETCH_ALLOW: "127.0.0.0/8",
        RESULT_FETCH_ALLOW: "127.0.0.0/8"
      },
      timings: earlyPolls
    }
  })
).pipe(Layer.provideMerge(hosts))

interface Customer {
  readonly secret: string
}

const post = ({ secret }: Customer, body: object) =>
  call("/v1/videos", { body, headers: { ...bearer(secret), "content-type": "application/json" } })
const get = ({ secret }: Customer, below = "") => call(`/v1/videos${below}`, { headers: { "x-api-key": secret } })

/** Waits for a video; what it is then. */
const over = Effect.fnUntraced(function* (customer: Customer, id: string, last: "completed" | "failed") {
  const look = Effect.map(get(customer, `/${id}`), (answer) => videoOf(answer))
  assertStates(yield* pollUntilFinished(look), last)
  return yield* look
})

const submitsOf = (wanted: string) =>
  Effect.map(Hosts, ({ farm }) => farm.calls.filter(({ prompt, step }) => step === "submit" && prompt === wanted))

const dataUri = `data:image/png;base64,${painting.toString("base64")}`

withLayer(gateway)("videos from a provider's queue", (it) => {
  it.effect("are created, read and downloaded with plain fetch", function* () {
    const customer = yield* Served.customer()
    const answer = yield* post(customer, { model: "film", prompt: "a cat", duration: "5" })
    const made = videoOf(answer, 202)
    assert.deepStrictEqual([made.status, made.seconds], ["queued", 4])
    assert.isNull(answer.headers.get("x-gateway-sandbox"))
    const early = yield* get(customer, `/${made.id}/content`)
    assert.strictEqual(early.status, 400)

    const { completed_at, data, url = "", ...video } = yield* over(customer, made.id, "completed")
    const charge_usd = toUsd(priceOf(4))
    assert.deepStrictEqual(video, { ...made, status: "completed", progress: 100, charge_usd })
    assert.deepStrictEqual(data, [{ url }])
    const list = yield* get(customer)
    assert.deepStrictEqual(JSON.parse(list.text), {
      object: "list",
      data: [{ ...video, completed_at, url, data }],
      first_id: made.id,
      last_id: made.id,
      has_more: false
    })
    const content = yield* get(customer, `/${made.id}/content`)
    assert.deepStrictEqual([content.status, content.text, content.headers.get("location")], [302, "", url])

    yield* assertLinked(url, tinyClip("a cat"), "video/mp4")
    assert.strictEqual(yield* customer.spent, priceOf(4))
    const [submit, ...more] = yield* submitsOf("a cat")
    assert.isEmpty(more)
    assert.deepInclude(submit, { account: "a", credential: "Key hush", path: "/a/vendor/film/text" })
    assert.deepStrictEqual(submit?.body, { prompt: "a cat", duration: 4 })
  })

  it.effect("start from a reference image given in any form", function* () {
    const { files } = yield* Hosts
    const customer = yield* Served.customer()
    const { openai } = customer
    const file = yield* calling(() => toFile(painting, "a.png", { type: "image/png" }))
    yield* files.script(Fake.steps({ type: "image/png" }, painting))
    const asked = { model: "film", prompt: "a picture" } as const
    const ids = yield* Effect.all([
      calling(() => openai.videos.create({ ...asked, input_reference: file })),
      calling(() => openai.videos.create({ ...asked, input_reference: { image_url: dataUri } })),
      Effect.map(post(customer, { ...asked, image: [`${files.url}/a.png`] }), (answer) => videoOf(answer, 202)),
      Effect.map(post(customer, { ...asked, input_reference: dataUri }), (answer) => videoOf(answer, 202))
    ])
    const submits = yield* submitsOf("a picture")
    assert.deepStrictEqual(
      submits.map(({ body, path }) => [path, body]),
      ids.map(() => ["/a/vendor/film/image", { prompt: "a picture", duration: 8, image_url: dataUri }])
    )
    yield* Effect.forEach(ids, ({ id }) => over(customer, id, "completed"), { concurrency: "unbounded" })
    assert.strictEqual(yield* customer.spent, 4n * priceOf(8))
  })

  it.effect("come from the next route when one fails, or fail without a charge", function* () {
    const customer = yield* Served.customer()
    const { openai } = customer
    const [broken, busy, moderated] = yield* Effect.forEach(["broken", "busy", "moderated"], (prompt) =>
      calling(() => openai.videos.create({ model: "film", prompt, seconds: "4" }))
    )
    const rejected = yield* thrownBy(() => openai.videos.create({ model: "film", prompt: "rejected" }))
    assertClientError(rejected, refusals.moderated)
    const videos = yield* Effect.all(
      [
        over(customer, broken?.id ?? "", "completed"),
        over(customer, busy?.id ?? "", "completed"),
        over(customer, moderated?.id ?? "", "failed")
      ],
      { concurrency: "unbounded" }
    )
    for (const [index, prompt] of ["broken", "busy"].entries()) {
      assert.isTrue((yield* fetched(videos[index]?.url ?? "")).bytes.equals(tinyClip(prompt)))
      assert.deepStrictEqual((yield* submitsOf(prompt)).map(Struct.get("account")), ["a", "b"])
    }
    assert.deepStrictEqual(videos[2].error, {
      code: "content_policy_violation",
      message: "Content was rejected by the moderation system."
    })
    assert.lengthOf(yield* submitsOf("rejected"), 1)
    assert.strictEqual(yield* customer.spent, 2n * priceOf(4))
    const { data } = yield* calling(() => openai.videos.list())
    assert.deepStrictEqual(
      data.map(({ id }) => id),
      [moderated, busy, broken].map((one) => one?.id ?? "")
    )
  })

  it.effect("come from an independent queue whose clips are on another host", function* () {
    const { files, mock } = yield* Hosts
    const { openai, ...customer } = yield* Served.customer()
    const clip = tinyClip("from elsewhere")
    yield* files.script(Fake.steps({ type: "video/mp4" }, clip))
    const result = { video: { url: `${files.url}/clip.mp4`, content_type: "video/mp4" } }
    mock.addFixture({ match: { predicate: () => true }, response: { json: result, status: 200 } })
    const { id } = yield* calling(() => openai.videos.create({ model: "aimock", prompt: "a dog", seconds: "4" }))
    const { url = "" } = yield* over(customer, id, "completed")
    assert.notInclude(url, files.url)

    const downloaded = yield* calling(async () =>
      Buffer.from(await (await openai.videos.downloadContent(id)).arrayBuffer())
    )
    assert.isTrue(downloaded.equals(clip))
    const { movie, samples } = parse(downloaded)
    assert.deepStrictEqual([movie.duration, samples.length], [movie.timescale, 24])
    const read = yield* Effect.repeat(files.received, { until: ({ path }) => path === "/clip.mp4" })
    assert.isUndefined(read.headers.authorization, "the credential went to another host")
    const submits = mock.getRequests().filter(({ path }) => path.endsWith("/vendor/film/text"))
    assert.deepStrictEqual(
      submits.map(({ body }) => asJson(body?.messages)),
      [[{ role: "user", content: "a dog" }]]
    )
    assert.strictEqual(yield* customer.spent, priceOf(4))
  })
})
