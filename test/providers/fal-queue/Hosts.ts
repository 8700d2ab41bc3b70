import { Effect, type Scope } from "effect"
import type { ImageRoute, VideoRoute } from "../../../src/domain/Model.ts"
import * as FalQueue from "../../../src/providers/fal-queue/FalQueue.ts"
import type * as Images from "../../contracts/ImageHarness.ts"
import { services, unread } from "../../contracts/MediaHarness.ts"
import type * as Videos from "../../contracts/VideoHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { accountOf, dataUri, hurriedServices, imageRouteOf, pictureAt, resultsOf, videoRouteOf } from "../jobs/Hosts.ts"
import * as JobHost from "../jobs/JobHost.ts"
import * as FalHost from "./FalHost.ts"

export const account = (baseUrl: string, headers?: Readonly<Record<string, string>>) =>
  accountOf("fal-queue", baseUrl, headers)

export const videoRoute = (baseUrl: string, headers?: Readonly<Record<string, string>>): VideoRoute =>
  videoRouteOf({
    provider: account(baseUrl, headers),
    model: "vendor/film/v1/text-to-video",
    imageModel: "vendor/film/v1/image-to-video"
  })

export const imageRoute = (baseUrl: string, options: ImageRoute["options"] = {}): ImageRoute =>
  imageRouteOf({ provider: account(baseUrl), model: "vendor/draw/v1", editModel: "vendor/draw/v1/edit", options })

const videoHost: Effect.Effect<Videos.Host, never, Scope.Scope> = Effect.gen(function* () {
  const fal = yield* FalHost.make
  const { credential: fetched, place, serve } = yield* resultsOf(fal, "video/mp4")
  return {
    route: videoRoute(fal.url),
    received: Effect.gen(function* () {
      const { credential, input, model } = FalHost.jobOf(yield* fal.heard("submit"))
      const { duration, image_url, prompt } = input
      const reference = image_url === undefined ? undefined : yield* pictureAt(image_url)
      return { model, prompt: String(prompt), seconds: duration, reference, credential }
    }),
    start: fal.stands("IN_PROGRESS"),
    stray: fal.stands("PAUSED"),
    finish: (clip) =>
      Effect.flatMap(place(clip), (url) => fal.ends({ video: { url, content_type: "video/mp4" }, seed: 1 })),
    endBy: (ending) => {
      if (ending === "no clip") return fal.ends({ seed: 1 })
      const black = { video: { url: dataUri("video/mp4", Buffer.from("black")) }, has_nsfw_concepts: [true] }
      if (ending === "flagged") return fal.ends(black)
      if (ending === "deep error") {
        const detail = [{ type: "no_media_generated", msg: "No", ctx: Fake.deep }]
        return Effect.zipRight(fal.ends({}), fal.always("result", Fake.json(422, { detail })))
      }
      const atResult = ending === "error beside" || ending === "moderation beside" ? "server" : ending
      const over = Effect.zipRight(fal.ends({}), fal.always("result", FalHost.refusals[atResult]))
      if (atResult === ending) return over
      const type = ending === "error beside" ? "internal_error" : "content_policy_violation"
      const status = { status: "COMPLETED", error: "The render failed.", error_type: type }
      return Effect.zipRight(over, fal.always("poll", Fake.json(200, status)))
    },
    fail: (step, fault) => fal.meets(step, FalHost.refusals[fault]),
    serve,
    fetched,
    cancelled: Effect.asVoid(fal.heard("cancel")),
    hold: (step) => JobHost.holding(fal, step)
  }
})

const asking = ["limit", "funds", "key", "server", "missing", ...unread] as const

export const videoHarness: Videos.Harness = {
  name: "fal-queue on our own fake",
  make: FalQueue.make,
  services,
  host: videoHost,
  faults: {
    submit: ["request", "image", "moderation", ...asking],
    poll: asking,
    result: asking.filter((fault) => fault !== "server")
  },
  endings: [
    "request",
    "image",
    "moderation",
    "flagged",
    "runner",
    "deep error",
    "no clip",
    "server",
    "error beside",
    "moderation beside"
  ],
  where: ["own", "elsewhere", "inside"]
}

/** A host that refuses jobs or returns invalid results. */
const meet = (fal: FalHost.FalHost, fault: Images.Fault): Effect.Effect<void> => {
  const inline = (text: string) => fal.ends({ images: [{ url: `data:image/png;base64,${text}` }] })
  switch (fault) {
    case "page":
      return fal.always("poll", FalHost.refusals.page)
    case "garbage":
    case "empty":
    case "cut answer":
      return Effect.zipRight(fal.ends({}), fal.always("result", FalHost.refusals[fault]))
    case "error inside":
      return fal.ends({ error: { message: "boom", type: "server_error" } })
    case "deep error":
      return fal.ends({ error: Fake.deep })
    case "no picture":
      return fal.ends({ images: [] })
    case "broken picture":
      return inline("<svg/> is no base64!")
    case "empty picture":
      return inline("")
    default:
      return fal.meets("submit", FalHost.refusals[fault])
  }
}

export const imageHost: Effect.Effect<Images.Host & { readonly fal: FalHost.FalHost }, never, Scope.Scope> = Effect.gen(
  function* () {
    const fal = yield* FalHost.make
    const results = yield* resultsOf(fal, "image/png")
    const answer = (painting: Images.Painting) =>
      Effect.flatMap(results.place(painting), (url) =>
        fal.ends({ images: [{ url }], revised_prompt: painting.revisedPrompt })
      )
    return {
      fal,
      route: imageRoute(fal.url),
      answer,
      fail: (fault) => meet(fal, fault),
      received: Effect.gen(function* () {
        const { credential, input, model } = FalHost.jobOf(yield* fal.heard("submit"))
        const references = yield* Effect.forEach(Array.isArray(input.image_urls) ? input.image_urls : [], pictureAt)
        return { model, prompt: String(input.prompt), references, credential }
      }),
      fetched: Effect.map(results.credential, (credential) => ({ credential })),
      hold: (painting) =>
        Effect.zipRight(
          answer(painting),
          Fake.holdJson((reply) => fal.meets("submit", reply), {
            request_id: "019afc71-0000-7000-8000-000000000000",
            status: "IN_QUEUE"
          })
        )
    }
  }
)

export const imageHarness: Images.Harness = {
  name: "fal-queue on our own fake",
  make: FalQueue.make,
  services: hurriedServices,
  host: imageHost,
  faults: [
    ...([
      "request",
      "image",
      "moderation",
      "error inside",
      "deep error",
      "no picture",
      "broken picture",
      "empty picture"
    ] as const),
    ...asking
  ],
  has: { places: ["inside", "own", "elsewhere"], revisedPrompt: true, edits: true, waiting: true }
}
