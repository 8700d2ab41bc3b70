import { Context, Effect, Layer } from "effect"
import { assertRefused, badRequest, bearer, call } from "../harness/client/HttpCalls.ts"
import { pollUntilFinished, videoOf } from "../harness/client/MediaClient.ts"
import { tinyClip } from "../harness/fixtures/TinyMedia.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort } from "../harness/Listening.ts"
import * as Fake from "../harness/upstream/FakeUpstream.ts"
import { videoCatalog } from "../harness/upstream/RenderFarm.ts"

/** What the queue says of a render: its status, and its result. */
interface Ending {
  readonly status: Fake.Reply
  readonly result: Fake.Reply
}

interface Queue {
  readonly url: string
  /** Bodies of the submits, oldest first. */
  readonly submits: Array<Fake.Received>
  readonly endings: Map<string, Ending>
}

class Farm extends Context.Tag("test/traffic/Farm")<Farm, Queue>() {}

const job = /\/requests\/([^/?]+)(\/status)?/

/** A queue like fal's: the prompt of a job says how it ends. */
const farm = Layer.scoped(
  Farm,
  Effect.gen(function* () {
    const submits: Array<Fake.Received> = []
    const endings = new Map<string, Ending>()
    const prompts: Array<string> = []
    const promptOf = (body: unknown) =>
      typeof body === "object" && body !== null && "prompt" in body ? String(body.prompt) : ""
    const fake = yield* Fake.serving((response, received) => {
      const { body, headers, method, path } = received
      if (path.includes("/files/")) return Fake.steps({ type: "video/mp4" }, tinyClip("a"))(response, received)
      const [, id, isStatus] = job.exec(path) ?? []
      if (method === "POST" && id === undefined) {
        submits.push(received)
        prompts.push(promptOf(body))
        return Fake.json(200, { request_id: `r${prompts.length - 1}`, status: "IN_QUEUE" })(response, received)
      }
      const clip = { video: { url: `http://${headers.host}/a/files/clip.mp4`, content_type: "video/mp4" } }
      const usual: Ending = { status: Fake.json(200, { status: "COMPLETED" }), result: Fake.json(200, clip) }
      const ending = endings.get(prompts[Number(id?.slice(1))] ?? "") ?? usual
      return (isStatus === undefined ? ending.result : ending.status)(response, received)
    })
    return { url: fake.url, submits, endings }
  })
)

const gateway = Served.layer(
  Effect.gen(function* () {
    const { url } = yield* Farm
    return {
      catalog: videoCatalog(url),
      env: {
        FARM_KEY: "hush",
        PORT: String(yield* freePort),
        FETCH_ALLOW: "127.0.0.0/8",
        RESULT_FETCH_ALLOW: "127.0.0.0/8"
      },
      timings: earlyPolls
    }
  })
).pipe(Layer.provideMerge(farm))

type Customer = Served.Customer

const post = ({ secret }: Customer, body: object) =>
  call("/v1/videos", { body, headers: { ...bearer(secret), "content-type": "application/json" } })
const get = ({ secret }: Customer, below: string) => call(`/v1/videos${below}`, { headers: bearer(secret) })

/** The video of a prompt, after it has ended. */
const filmed = Effect.fnUntraced(function* (customer: Customer, prompt: string) {
  const { id } = videoOf(yield* post(customer, { model: "film", prompt, seconds: 4 }), 202)
  yield* pollUntilFinished(Effect.map(get(customer, `/${id}`), (answer) => videoOf(answer)))
  return videoOf(yield* get(customer, `/${id}`))
})

const completed = (more: object = {}) => Fake.json(200, { status: "COMPLETED", ...more })
const internal = Fake.json(500, { detail: "Internal Server Error" })
const moderated = Fake.json(422, {
  detail: [{ loc: ["body", "prompt"], msg: "Flagged by a content checker.", type: "content_policy_violation" }]
})

withLayer(gateway)("traffic of videos", (it) => {
  it.effect.each<readonly [what: string, ending: Ending]>([
    [
      "a text for an error, and a result of 500",
      { status: completed({ error: "Runner ran out of memory" }), result: internal }
    ],
    ["an error with a type", { status: completed({ error: "boom", error_type: "internal_error" }), result: internal }],
    ["an object for an error", { status: completed({ error: { message: "boom" } }), result: internal }],
    [
      "an error, and a result of 200 without a video",
      { status: completed({ error: "boom" }), result: Fake.json(200, {}) }
    ],
    [
      "an error, and a result that is no JSON",
      { status: completed({ error: "boom" }), result: Fake.text(500, "text/plain", "oops") }
    ]
  ])("a render that ends as completed with %s is failed and costs nothing", function* ([what, ending]) {
    const { endings } = yield* Farm
    endings.set(what, ending)
    const customer = yield* Served.customer()
    const video = yield* filmed(customer, what)
    assert.strictEqual(video.status, "failed")
    assert.strictEqual(video.error?.code, "upstream_error")
    assert.notInclude(JSON.stringify(video), "boom")
    assert.strictEqual(yield* customer.spentInTheEnd, 0n)
  })

  it.effect.each<readonly [what: string, error: unknown]>([
    ["null", null],
    ["nothing", undefined],
    ["an empty text", ""]
  ])("a render whose error is %s is completed and charged", function* ([what, error]) {
    const { endings } = yield* Farm
    const usual = completed({ error })
    const prompt = `error: ${what}`
    const customer = yield* Served.customer()
    endings.set(prompt, {
      status: usual,
      result: (response, received) =>
        Fake.json(200, { video: { url: `http://${received.headers.host}/a/files/clip.mp4` } })(response, received)
    })
    const video = yield* filmed(customer, prompt)
    assert.strictEqual(video.status, "completed")
    assert.strictEqual(yield* customer.spentInTheEnd, 400_000_000n)
  })

  it.effect(
    "a render that ends with moderation is failed, costs nothing, and the client sees no id of the host",
    function* () {
      const { endings } = yield* Farm
      endings.set("moderated", { status: completed(), result: moderated })
      const customer = yield* Served.customer()
      const video = yield* filmed(customer, "moderated")
      assert.deepStrictEqual([video.status, video.error?.code], ["failed", "content_policy_violation"])
      assert.notMatch(JSON.stringify(video.error), /r\d+|checker/)
      assert.strictEqual(yield* customer.spentInTheEnd, 0n)
    }
  )

  it.effect("a render that ends with moderation inside the status is failed as such", function* () {
    const { endings } = yield* Farm
    const error = "The content could not be processed because it was flagged by a content checker."
    endings.set("flagged", { status: completed({ error, error_type: "content_policy_violation" }), result: moderated })
    const customer = yield* Served.customer()
    const video = yield* filmed(customer, "flagged")
    assert.deepStrictEqual([video.status, video.error?.code], ["failed", "content_policy_violation"])
    assert.strictEqual(yield* customer.spentInTheEnd, 0n)
  })

  it.effect.each<readonly [what: string, result: object]>([
    ["null", { video: null }],
    ["an empty object", { video: {} }],
    ["an empty list", { videos: [] }],
    ["missing", { seed: 1 }]
  ])("a completed render whose video is %s is failed and costs nothing", function* ([what, result]) {
    const { endings } = yield* Farm
    const prompt = `video: ${what}`
    endings.set(prompt, { status: completed(), result: Fake.json(200, result) })
    const customer = yield* Served.customer()
    const video = yield* filmed(customer, prompt)
    assert.strictEqual(video.status, "failed")
    assert.strictEqual(yield* customer.spentInTheEnd, 0n)
  })

  it.effect("a lone surrogate in a prompt is replaced before it is sent", function* () {
    const { submits } = yield* Farm
    const customer = yield* Served.customer()
    yield* filmed(customer, "cut here: \ud83d")
    const last = submits.at(-1)
    assert.propertyVal(last?.body, "prompt", "cut here: \ufffd")
    assert.notInclude(last?.bytes.toString("utf8") ?? "", "\\ud83d")
  })

  it.effect("no thumbnail of a video is answered with the video", function* () {
    const customer = yield* Served.customer()
    const { id } = yield* filmed(customer, "a cat runs")
    for (const variant of ["thumbnail", "spritesheet", "poster", "", "VIDEO"]) {
      const answer = yield* get(customer, `/${id}/content?variant=${variant}`)
      assert.strictEqual(answer.status, 400, variant)
      assert.deepInclude(JSON.parse(answer.text).error, { type: "invalid_request_error", param: "variant", code: null })
    }
    for (const query of ["", "?variant=video", "?other=thumbnail"]) {
      assert.strictEqual((yield* get(customer, `/${id}/content${query}`)).status, 302, query)
    }
    const repeated = yield* get(customer, `/${id}/content?variant=video&variant=thumbnail`)
    assert.strictEqual(repeated.status, 400)
  })

  it.effect("a thumbnail of an unfinished or unknown video is a refusal, not a redirect", function* () {
    const { endings } = yield* Farm
    const customer = yield* Served.customer()
    endings.set("slow", { status: Fake.json(202, { status: "IN_PROGRESS" }), result: internal })
    const { id } = videoOf(yield* post(customer, { model: "film", prompt: "slow", seconds: 4 }), 202)
    assert.strictEqual((yield* get(customer, `/${id}/content?variant=thumbnail`)).status, 400)
    assertRefused(yield* get(customer, `/${id}/content`), badRequest("The video is not completed."))
    assert.include([400, 404], (yield* get(customer, "/vid_nobody/content?variant=thumbnail")).status)
  })
})
