import { LLMock } from "@copilotkit/aimock"
import { Effect, Layer, Redacted, type Scope } from "effect"
import type { ImageType, Picture } from "../../../src/domain/Media.ts"
import type { VideoRoute } from "../../../src/domain/Model.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import { type Clip, type Harness, type Host, secret, unseen, type Weather } from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as FalHost from "../../harness/upstream/FalHost.ts"
import * as JobHost from "../../harness/upstream/JobHost.ts"
import * as PlainFetcher from "../../harness/upstream/PlainFetcher.ts"

export const account = (baseUrl: string, headers: Readonly<Record<string, string>> = {}) => ({
  name: "fake",
  adapter: "fal-queue",
  baseUrl,
  credential: Redacted.make(secret),
  headers
})

export const videoRoute = (baseUrl: string, headers?: Readonly<Record<string, string>>): VideoRoute => ({
  id: "ours@fake",
  provider: account(baseUrl, headers),
  model: "vendor/film/v1/text-to-video",
  imageModel: "vendor/film/v1/image-to-video",
  referenceImage: "optional",
  preference: 1,
  weight: 1,
  seconds: [4, 6, 8],
  secondsAs: "number",
  cost: undefined,
  options: {}
})

const types: ReadonlyArray<ImageType> = ["image/png", "image/jpeg", "image/webp", "image/gif"]

/** Read by the platform's own parser of URLs. */
export const pictureAt = async (uri: unknown): Promise<Picture> => {
  const response = await fetch(String(uri))
  const type = types.find((known) => known === response.headers.get("content-type"))
  if (type === undefined) throw new Error(`a reference of type ${response.headers.get("content-type")}`)
  return { type, bytes: new Uint8Array(await response.arrayBuffer()) }
}

export const dataUri = (bytes: Uint8Array) => `data:video/mp4;base64,${Buffer.from(bytes).toString("base64")}`

export const services = Layer.merge(
  Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 }),
  PlainFetcher.layer
)

const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const fal = yield* FalHost.make
  const other = yield* Fake.make
  let looksAt: Effect.Effect<Fake.Received> = fal.heard("download")
  const file = "/files/b/clip.mp4?sig=a%2Fb"
  const url = ({ bytes, where }: Clip) =>
    where === "inside" ? dataUri(bytes) : `${where === "own" ? fal.origin : other.url}${file}`
  const failures = {
    missing: Fake.json(404, {}),
    server: Fake.json(500, {}),
    cut: Fake.steps({ type: "video/mp4" }, "half a clip", Fake.cut)
  }
  return {
    route: videoRoute(fal.url),
    understood: Effect.gen(function* () {
      const { credential, input, model } = FalHost.jobOf(yield* fal.heard("submit"))
      const { duration, image_url, prompt } = input
      const reference = image_url === undefined ? undefined : yield* Effect.promise(() => pictureAt(image_url))
      return { model, prompt: String(prompt), seconds: duration, reference, credential }
    }),
    starts: fal.stands("IN_PROGRESS"),
    strays: fal.stands("PAUSED"),
    finishes: (clip) =>
      Effect.gen(function* () {
        const reply = Fake.steps({ type: "video/mp4" }, clip.bytes)
        looksAt = clip.where === "elsewhere" ? other.received : fal.heard("download")
        if (clip.where === "elsewhere") yield* other.script(reply, reply)
        yield* fal.always("download", reply)
        yield* fal.ends({ video: { url: url(clip), content_type: "video/mp4" }, seed: 1 })
      }),
    fails: (ending) => {
      if (ending === "no clip") return fal.ends({ seed: 1 })
      if (ending === "flagged")
        return fal.ends({
          video: { url: url({ bytes: Buffer.from("black"), where: "inside" }) },
          has_nsfw_concepts: [true]
        })
      return Effect.zipRight(fal.ends({}), fal.always("result", FalHost.refusals[ending]))
    },
    meets: (step, weather) => fal.meets(step, FalHost.refusals[weather]),
    serves: (how) => fal.always("download", failures[how]),
    fetched: Effect.suspend(() => looksAt).pipe(Effect.map(({ headers }) => headers.authorization)),
    cancelled: Effect.asVoid(fal.heard("cancel")),
    holds: (step) => JobHost.holding(fal, step)
  }
})

/** What aimock says of an error, in words of its own. */
const aimockErrors = {
  limit: { status: 429, error: { message: "Slow down", type: "rate_limit_error" } },
  funds: { status: 403, error: { message: "Exhausted balance", type: "billing" } },
  key: { status: 401, error: { message: "Bad key" } },
  request: { status: 422, error: { message: "Too long" } },
  moderation: { status: 422, error: { message: "No", type: "content_policy_violation" } },
  server: { status: 500, error: { message: "Sorry" } },
  missing: { status: 404, error: { message: "No such app" } }
} as const
const isError = (weather: Weather): weather is keyof typeof aimockErrors => weather in aimockErrors

/**
 * The same in the words of an independent fake. It counts how often it was asked: a job runs from the second question
 * on and is done at the third; what it gives in the end is settled when the job is taken.
 */
export const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const files = yield* Fake.make
  const mock = yield* Effect.acquireRelease(
    Effect.promise(() =>
      LLMock.create({
        port: 0,
        auth: { apiKeys: [secret] },
        falQueue: { pollsBeforeInProgress: 2, pollsBeforeCompleted: 3 }
      })
    ),
    (started) => Effect.promise(() => started.stop())
  )
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture })
  const result: { video: { url: string } } = { video: { url: "" } }
  next({ response: { json: result, status: 200 } })
  const headers = { "x-fal-target-host": "queue.fal.run" }
  const route = videoRoute(`${mock.url}/fal`, headers)
  const called = (path: RegExp) => mock.getRequests().filter((entry) => path.test(entry.path))
  let looked = 0
  return {
    route,
    understood: Effect.sync(() => {
      const body = called(/(text|image)-to-video$/)[looked++]?.body
      const [message] = Array.isArray(body?.messages) ? body.messages : []
      const prompt = message?.content
      return {
        model: String(body?.model),
        prompt: typeof prompt === "string" ? prompt : "",
        seconds: unseen,
        reference: unseen,
        credential: unseen
      }
    }),
    starts: Effect.void,
    finishes: ({ bytes, where }) =>
      Effect.gen(function* () {
        const reply = Fake.steps({ type: "video/mp4" }, bytes)
        yield* files.script(reply, reply)
        result.video.url = where === "inside" ? dataUri(bytes) : `${files.url}/clip.mp4`
      }),
    fails: () => Effect.dieMessage("aimock's jobs do not fail"),
    meets: (_, weather) =>
      Effect.suspend(() => {
        if (!isError(weather)) return Effect.dieMessage(`aimock does not know ${weather}`)
        return Effect.sync(() => next({ response: { ...aimockErrors[weather], retryAfter: 7 } }))
      }),
    fetched: Effect.map(files.received, ({ headers: came }) => came.authorization),
    cancelled: Effect.sync(() => {
      if (called(/\/cancel$/).length === 0) throw new Error("nothing was cancelled")
    })
  }
})

const answered: ReadonlyArray<Weather> = ["limit", "funds", "key", "request", "moderation", "server", "missing"]
const unread: ReadonlyArray<Weather> = ["page", "garbage", "empty", "cut answer"]
const asking: ReadonlyArray<Weather> = ["limit", "funds", "key", "server", "missing", ...unread]

export const harnesses: ReadonlyArray<Harness> = [
  {
    name: "fal-queue on our own fake",
    make: FalQueue.make,
    services,
    host: ownHost,
    weathers: { submit: [...answered, "image", ...unread], poll: asking, result: asking },
    endings: ["request", "image", "moderation", "flagged", "runner", "no clip"],
    where: ["own", "elsewhere", "inside"]
  },
  {
    name: "fal-queue on aimock",
    make: FalQueue.make,
    services,
    host: aimockHost,
    weathers: { submit: answered, poll: [], result: [] },
    endings: [],
    where: ["elsewhere", "inside"]
  }
]
