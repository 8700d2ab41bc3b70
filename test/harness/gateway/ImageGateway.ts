/** `gateway` serves image models with the scripted providers of `Upstreams`. `draw` and `edit` request images. */

import { Effect, Layer } from "effect"
import { post, type Sent } from "../client/HttpCalls.ts"
import { freePort } from "../Listening.ts"
import { edits, generations } from "../upstream/Replies.ts"
import { catalogOver, credentials, onFirst, Upstreams, layer as upstreams } from "../upstream/Upstreams.ts"
import * as Served from "./ServedGateway.ts"

export interface ImageModelOptions {
  /** In USD per image. The default is 0.04. */
  readonly price?: number
  readonly variants?: ReadonlyArray<{
    readonly resolution: string
    readonly sizes?: ReadonlyArray<string>
    readonly price_usd: number
  }>
  readonly edit?: boolean
  readonly routes?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

export type ImageModels = Readonly<Record<string, ImageModelOptions>>

/** The default price of a model, in nano-USD. */
export const usualPrice = 40_000_000n

const entry = (id: string, { edit = true, price = 0.04, routes = [onFirst], variants }: ImageModelOptions) => ({
  id,
  surface: "image",
  ...(variants === undefined ? { pricing: { per_image_usd: price } } : { variants }),
  edit,
  routes
})

const talk = {
  id: "talk",
  surface: "chat",
  family: "A",
  context_length: 100_000,
  max_output: 8_000,
  pricing: { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 },
  reasoning: "none",
  capabilities: [],
  image_tokens: 1_000,
  created: "2026-01-01",
  routes: [{ provider: "talker", model: "x" }]
}

type Asked = readonly [models: ImageModels, env?: Readonly<Record<string, string>>]

const options = (...[models, env]: Asked) =>
  Effect.gen(function* () {
    const upstreams = yield* Upstreams
    const talker = { adapter: "openai-chat", base_url: `${upstreams.first.url}/v1`, credential: "FIRST_KEY" }
    return {
      catalog: catalogOver("openai-images", upstreams, { talker }, [
        ...Object.entries(models).map(([id, options]) => entry(id, options)),
        talk
      ]),
      env: { ...credentials, PORT: String(yield* freePort), ...env }
    }
  })

/** A gateway whose image models use the scripted providers. Its links contain its own address. */
export const gateway = (...asked: Asked) => Layer.provideMerge(Served.layer(options(...asked)), upstreams)
export const gatewayProcess = (...asked: Asked) => Layer.provideMerge(Served.processLayer(options(...asked)), upstreams)

/** Requests an image as a customer. */
export const draw = post(generations)
/** Requests an edit as a customer. */
export const edit = post(edits)

export const keyed = (key: string): Sent => ({ headers: { "idempotency-key": key } })
