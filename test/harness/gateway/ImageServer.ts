import { Context, Effect, Layer } from "effect"
import { ChatCompletions } from "../../../src/services/chat/ChatCompletions.ts"
import {
  type ImageFailure,
  ImageGenerations,
  type ImageJob,
  type ImageResult
} from "../../../src/services/images/ImageGenerations.ts"
import { VideoJobs } from "../../../src/services/videos/VideoJobs.ts"
import { bearer, callAt, type Sent } from "../client/HttpCalls.ts"
import { small } from "../fixtures/Catalogs.ts"
import * as MockedServer from "./MockedServer.ts"

/** Beside `draw`, which can edit and has 1K and 4K. */
const text = `${small}
  - id: plain
    surface: image
    pricing: {per_image_usd: 0.04}
    routes: [{provider: clips, model: v/plain}]
`

export const drawn: ImageResult = {
  created: 1_700_000_000,
  image: { url: "https://media.test/a.png" },
  revisedPrompt: undefined,
  sandbox: false,
  replayed: false
}

/** The server's address, and what its handlers asked to be drawn. */
export class ImageServer extends Context.Tag("test/ImageServer")<
  ImageServer,
  {
    readonly url: string
    /** Every job so far, oldest first. */
    readonly jobs: ReadonlyArray<ImageJob>
    /** What the next job ends with; after it all succeed again. */
    readonly script: (outcome: Effect.Effect<ImageResult, ImageFailure>) => void
  }
>() {}

/** A real server over a real database, where nothing is drawn. */
export const layer = Layer.unwrapEffect(
  Effect.sync(() => {
    const jobs: Array<ImageJob> = []
    const outcomes: Array<Effect.Effect<ImageResult, ImageFailure>> = []
    const images = Layer.mock(ImageGenerations, {
      generate: (job) =>
        Effect.suspend(() => {
          jobs.push(job)
          return outcomes.shift() ?? Effect.succeed(drawn)
        })
    })
    const mocked = Layer.mergeAll(images, Layer.mock(ChatCompletions, {}), Layer.mock(VideoJobs, {}))
    return Layer.effect(
      ImageServer,
      Effect.map(MockedServer.address, (url) => ({ url, jobs, script: (outcome) => outcomes.push(outcome) }))
    ).pipe(Layer.provideMerge(MockedServer.layer(text, mocked)))
  })
)

export const generations = "/v1/images/generations"
export const edits = "/v1/images/edits"

/** A request of a customer; what is no text and no bytes goes as JSON. */
export const post = ({ secret }: { readonly secret: string }, path: string, body: unknown, sent: Sent = {}) =>
  Effect.flatMap(ImageServer, ({ url }) =>
    callAt(`${url}${path}`, {
      method: "POST",
      ...sent,
      body,
      headers: { ...bearer(secret), "content-type": "application/json", ...sent.headers }
    })
  )
