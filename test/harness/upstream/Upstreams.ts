/** `gateway` serves chat models with two scripted providers, whose replies contain names that no client may receive. */

import { Context, Effect, Layer } from "effect"
import type { CatalogRoute } from "../fixtures/ChatCatalog.ts"
import * as Served from "../gateway/ServedGateway.ts"
import * as Upstream from "./FakeUpstream.ts"

export interface Watched extends Upstream.FakeUpstream {
  /** All requests so far, oldest first. */
  readonly calls: ReadonlyArray<Upstream.Received>
}

/** The servers of the providers `first` and `second` in the catalog below. */
export class Upstreams extends Context.Tag("test/Upstreams")<
  Upstreams,
  { readonly first: Watched; readonly second: Watched }
>() {}

const watched = Effect.gen(function* () {
  const upstream = yield* Upstream.make
  const calls: Array<Upstream.Received> = []
  yield* upstream.received.pipe(
    Effect.map((call) => calls.push(call)),
    Effect.forever,
    Effect.forkScoped
  )
  return { ...upstream, calls } satisfies Watched
})

export const layer = Layer.scoped(
  Upstreams,
  Effect.gen(function* () {
    return { first: yield* watched, second: yield* watched }
  })
)

/** Secrets and names that only the operator and the providers may see. */
export const hidden = { firstKey: "sk-first-hush", secondKey: "sk-second-hush", model: "vendor/hush-1" }

export interface ModelOptions {
  readonly family?: "A" | "B" | "C"
  readonly pricing?: Readonly<Record<string, unknown>>
  readonly capabilities?: ReadonlyArray<string>
  readonly max_web_searches?: number
  readonly routes?: ReadonlyArray<CatalogRoute & Readonly<Record<string, unknown>>>
}

export const onFirst = { provider: "first", model: hidden.model }
export const onSecond = { provider: "second", model: hidden.model, preference: 2 }
/** A route to a provider without a credential. */
export const onAbsent = { provider: "absent", model: hidden.model }

/** The maximum output of a model in the catalog below, in tokens. */
export const maxOutput = 8_192
/** In USD per million tokens: a millionth of a dollar per prompt token, and two per completion token. */
export const prices = { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 }
export const nanoPerToken = { prompt: 1_000n, completion: 2_000n }

const entry = (
  id: string,
  { routes = [onFirst], family = "A", pricing = prices, capabilities, max_web_searches }: ModelOptions
) => ({
  id,
  surface: "chat",
  family,
  context_length: 100_000,
  max_output: maxOutput,
  pricing,
  reasoning: ["low", "medium", "high"],
  capabilities: capabilities ?? ["tools"],
  image_tokens: 1_000,
  created: "2026-01-01",
  max_web_searches,
  routes
})

const picture = {
  id: "picture",
  surface: "image",
  pricing: { per_image_usd: 0.04 },
  routes: [{ provider: "drawer", model: "vendor/picture" }]
}

/** Returns a catalog with the scripted providers, one that refuses connections, one without a credential, and these. */
export const catalogOver = (
  adapter: string,
  { first, second }: Upstreams["Type"],
  more: object,
  models: ReadonlyArray<object>
): string => {
  const provider = (url: string, credential: string) => ({ adapter, base_url: `${url}/v1`, credential })
  return JSON.stringify({
    providers: {
      first: provider(first.url, "FIRST_KEY"),
      second: provider(second.url, "SECOND_KEY"),
      refusing: provider("http://127.0.0.1:1", "FIRST_KEY"),
      absent: provider(first.url, "ABSENT_KEY"),
      ...more
    },
    families: {
      A: { sampling: true, max_output_policy: "clamp" },
      B: { sampling: false, max_output_policy: "clamp" },
      C: { sampling: false, max_output: maxOutput, max_output_policy: "reject" }
    },
    models
  })
}

/** The credentials of `first` and `second`. */
export const credentials = { FIRST_KEY: hidden.firstKey, SECOND_KEY: hidden.secondKey }

export type Models = Readonly<Record<string, ModelOptions>>

type Asked = readonly [models: Models, env?: Readonly<Record<string, string>>]

const options = (...[models, env]: Asked) =>
  Effect.map(Upstreams, (upstreams) => ({
    catalog: catalogOver("openai-chat", upstreams, { drawer: { adapter: "sandbox" } }, [
      ...Object.entries(models).map(([id, options]) => entry(id, options)),
      picture
    ]),
    env: { ...credentials, ...env }
  }))

/** A gateway whose models use the scripted providers. Each model has circuits of its own. */
export const gateway = (...asked: Asked) => Layer.provideMerge(Served.layer(options(...asked)), layer)
export const gatewayProcess = (...asked: Asked) => Layer.provideMerge(Served.processLayer(options(...asked)), layer)

/** A provider's complete answer, with names that no client may receive. */
export const completion = (content: string, usage?: Readonly<Record<string, unknown>>) => ({
  id: "chatcmpl-hush-id",
  object: "chat.completion",
  created: 1,
  model: hidden.model,
  system_fingerprint: "hush-fingerprint",
  choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
  ...(usage === undefined ? {} : { usage })
})

export const usual = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
/** The price of the usual usage at the usual prices, in nano-USD. */
export const usualCharge = 20_000n

export const answers = (content = "fine"): Upstream.Reply => Upstream.json(200, completion(content, usual))

/** Returns one chunk of a provider's stream. */
export const chunk = (delta: object, finish: string | null = null) =>
  Upstream.event({
    id: "chatcmpl-hush-id",
    object: "chat.completion.chunk",
    created: 1,
    model: hidden.model,
    choices: [{ index: 0, delta, finish_reason: finish }]
  })

/** The chunk with the usage of a stream. */
export const usageChunk = Upstream.event({ ...completion(""), choices: [], usage: usual })
export const ending = chunk({}, "stop") + usageChunk + Upstream.done

export const streams = (...texts: ReadonlyArray<string>): Upstream.Reply =>
  Upstream.sse(...texts.map((content) => chunk({ content })), ending)
