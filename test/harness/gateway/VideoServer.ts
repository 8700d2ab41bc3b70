import { Context, Effect, Layer } from "effect"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import { ImageGenerations } from "../../../src/services/images/ImageGenerations.ts"
import { VideoJobsFake } from "../../fakes/VideoJobsFake.ts"
import type { Account } from "../client/Account.ts"
import { bearer, callAt, type Sent } from "../client/HttpCalls.ts"
import { small } from "../fixtures/Catalogs.ts"
import * as MockedServer from "./MockedServer.ts"

/** Beside `film`, which may start from a frame and renders 4, 6 or 8 seconds. */
const text = `${small}
  - id: framed
    surface: video
    pricing: {per_video_usd: 0.5}
    seconds: {allowed: [5, 10], default: 5}
    reference_image: required
    routes: [{provider: clips, model: v/framed, image_model: v/framed}]
  - id: bare
    surface: video
    pricing: {per_second_usd: 0.05}
    seconds: {allowed: [6], default: 6}
    reference_image: none
    routes: [{provider: clips, model: v/bare}]
  - id: made-up
    surface: video
    pricing: {per_second_usd: 0.05}
    seconds: {allowed: [6], default: 6}
    reference_image: optional
    routes: [{provider: dreams, model: v/any, image_model: v/any}]
`.replace("families:", "  dreams: {adapter: sandbox}\nfamilies:")

/** The server's address, and what its handlers made of requests. */
export class VideoServer extends Context.Tag("test/VideoServer")<
  VideoServer,
  { readonly url: string; readonly videos: VideoJobsFake }
>() {}

/** A real server over a real database, where nothing is rendered. */
export const layer = Layer.unwrapEffect(
  Effect.sync(() => {
    const videos = new VideoJobsFake()
    const mocked = Layer.mergeAll(videos.layer, Layer.mock(ChatCompletions, {}), Layer.mock(ImageGenerations, {}))
    return Layer.effect(
      VideoServer,
      Effect.map(MockedServer.address, (url) => ({ url, videos }))
    ).pipe(Layer.provideMerge(MockedServer.layer(text, mocked)))
  })
)

export const path = "/v1/videos"

/** A request of a customer; what is no text and no bytes goes as JSON. */
export const post = ({ secret }: Pick<Account, "secret">, body: unknown, sent: Sent = {}) =>
  Effect.flatMap(VideoServer, ({ url }) =>
    callAt(`${url}${path}`, {
      method: "POST",
      ...sent,
      body,
      headers: { ...bearer(secret), "content-type": "application/json", ...sent.headers }
    })
  )

/** What is below `/v1/videos`. */
export const get = ({ secret }: Pick<Account, "secret">, below = "") =>
  Effect.flatMap(VideoServer, ({ url }) => callAt(`${url}${path}${below}`, { headers: bearer(secret) }))

/** The job that the last request became. */
export const lastJob = Effect.map(VideoServer, ({ videos: { jobs } }) => {
  const job = jobs.at(-1)
  if (job === undefined) throw new Error("nothing was asked to be rendered")
  return job
})
