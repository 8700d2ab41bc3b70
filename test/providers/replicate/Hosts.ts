import { Effect, type Scope } from "effect"
import type { ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import * as Replicate from "../../../src/providers/replicate/Replicate.ts"
import type * as Images from "../../contracts/ImageHarness.ts"
import type * as Videos from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as Fal from "../fal-queue/Hosts.ts"
import { accountOf, imageRouteOf, pictureAt, resultsOf, videoRouteOf } from "../jobs/Hosts.ts"
import * as JobHost from "../jobs/JobHost.ts"
import * as ReplicateHost from "./ReplicateHost.ts"

export const replicateAccount = (baseUrl: string) => accountOf("replicate", baseUrl)

export const clipRoute = (baseUrl: string, options: VideoRoute["options"] = {}): VideoRoute =>
  videoRouteOf({
    provider: replicateAccount(baseUrl),
    model: "vendor/film",
    imageModel: "vendor/film-from-image",
    options
  })

export const drawRoute = (baseUrl: string, options: ImageRoute["options"] = {}): ImageRoute =>
  imageRouteOf({ provider: replicateAccount(baseUrl), model: "vendor/draw", editModel: "vendor/draw-over", options })

/** Messages of models that refuse. They differ between models. */
const refusedContent = "The input or output was flagged as sensitive. Please try again. (E005) (VYKG0CLfUe)"

const videoHost: Effect.Effect<Videos.Host, never, Scope.Scope> = Effect.gen(function* () {
  const replicate = yield* ReplicateHost.make
  const { credential: fetched, place, serve } = yield* resultsOf(replicate, "video/mp4")
  return {
    route: clipRoute(replicate.origin),
    received: Effect.gen(function* () {
      const { credential, input, model, prefer } = ReplicateHost.predictionOf(yield* replicate.heard("submit"))
      if (prefer !== "respond-async") return yield* Effect.dieMessage(`a clip is waited for: ${prefer}`)
      const { duration, image, prompt } = input
      const reference = image === undefined ? undefined : yield* pictureAt(image)
      return { model, prompt: String(prompt), seconds: duration, reference, credential }
    }),
    start: replicate.stands("processing"),
    stray: replicate.stands("paused"),
    finish: (clip) => Effect.flatMap(place(clip), replicate.succeeds),
    endBy: (ending) => {
      if (ending === "no clip") return replicate.succeeds([])
      if (ending === "deep error") return replicate.fails(Fake.deep)
      return replicate.fails(ending === "moderation" ? refusedContent : ending === "flagged" ? "NSFW content" : "OOM")
    },
    fail: (step, fault) => replicate.meets(step === "submit" ? "submit" : "poll", ReplicateHost.refusals[fault]),
    serve,
    fetched,
    cancelled: Effect.asVoid(replicate.heard("cancel")),
    hold: (step) => JobHost.holding(replicate, step === "submit" ? "submit" : "poll")
  }
})

export const videoHarness: Videos.Harness = {
  ...Fal.videoHarness,
  name: "replicate on our own fake",
  make: Replicate.make,
  host: videoHost,
  faults: { ...Fal.videoHarness.faults, result: [] },
  endings: ["moderation", "flagged", "runner", "deep error", "no clip"]
}

/** A host that refuses predictions or returns invalid output. */
const meet = (replicate: ReplicateHost.ReplicateHost, fault: Images.Fault): Effect.Effect<void> => {
  const inline = (text: string) => replicate.succeeds(`data:image/png;base64,${text}`)
  switch (fault) {
    case "page":
    case "garbage":
    case "empty":
    case "cut answer":
      return replicate.always("poll", ReplicateHost.refusals[fault])
    case "moderation":
      return replicate.fails(refusedContent)
    case "error inside":
      return replicate.fails({ message: "boom" })
    case "deep error":
      return replicate.fails(Fake.deep)
    case "no picture":
      return replicate.succeeds(null)
    case "broken picture":
      return inline("<svg/> is no base64!")
    case "empty picture":
      return inline("")
    default:
      return replicate.meets("submit", ReplicateHost.refusals[fault])
  }
}

export const imageHost: Effect.Effect<
  Images.Host & { readonly replicate: ReplicateHost.ReplicateHost },
  never,
  Scope.Scope
> = Effect.gen(function* () {
  const replicate = yield* ReplicateHost.make
  const results = yield* resultsOf(replicate, "image/png")
  const answer = (painting: Images.Painting) =>
    Effect.flatMap(results.place(painting), (url) =>
      replicate.succeeds(painting.where === "inside" ? url : [url, "https://replicate.delivery/xezq/another.png"])
    )
  return {
    replicate,
    route: drawRoute(replicate.origin),
    answer,
    fail: (fault) => meet(replicate, fault),
    received: Effect.gen(function* () {
      const { credential, input, model } = ReplicateHost.predictionOf(yield* replicate.heard("submit"))
      const references = yield* Effect.forEach(Array.isArray(input.image_input) ? input.image_input : [], pictureAt)
      return { model, prompt: String(input.prompt), references, credential }
    }),
    fetched: Effect.map(results.credential, (credential) => ({ credential })),
    hold: (painting) =>
      Effect.zipRight(
        answer(painting),
        Fake.holdJson((reply) => replicate.meets("submit", reply), {
          id: "019afc7100007000",
          status: "processing",
          output: null
        })
      )
  }
})

export const imageHarness: Images.Harness = {
  ...Fal.imageHarness,
  name: "replicate on our own fake",
  make: Replicate.make,
  host: imageHost,
  has: { ...Fal.imageHarness.has, revisedPrompt: false }
}
