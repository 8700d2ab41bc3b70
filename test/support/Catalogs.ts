import { readFileSync } from "node:fs"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatModel, Model, Surface } from "../../src/domain/Model.ts"
import { type Adapter, everything, wires } from "../../src/services/catalog/Adapters.ts"
import { Catalog, type CatalogOptions } from "../../src/services/catalog/Catalog.ts"

export const builtIn = readFileSync(new URL("../../catalog.yaml", import.meta.url), "utf8")

export const small = `
providers:
  first:
    adapter: openai-chat
    base_url: https://first.test/v1/
    credential: FIRST_KEY
    headers: {x-team: blue}
    options: {max_tokens_field: max_completion_tokens, retries: 2}
  second: {adapter: openai-chat, base_url: "http://127.0.0.1:9/v1", credential: SECOND_KEY}
  clips: {adapter: fal-queue, base_url: https://clips.test, credential: CLIPS_KEY}
families:
  A: {sampling: true, max_output_policy: clamp}
  C: {sampling: false, max_output: 8192, max_output_policy: reject}
models:
  - id: talk
    surface: chat
    family: A
    context_length: 1000000
    max_output: 64000
    pricing:
      prompt_per_1m_usd: 1.5
      completion_per_1m_usd: 7.50
      cached_prompt_per_1m_usd: 0.003625
      long_context: {above: 200000, prompt_per_1m_usd: 3, completion_per_1m_usd: 11.25}
      official: {prompt_per_1m_usd: 2, completion_per_1m_usd: 9}
    reasoning: [low, medium, high]
    capabilities: [tools, vision, web_search]
    image_tokens: 2500
    created: 2026-07-21
    routes:
      - {provider: first, model: vendor-talk, options: {retries: 5}}
      - {provider: first, model: vendor-talk-b, weight: 3, capabilities: [tools, vision]}
      - {provider: second, model: v/talk, preference: 2, capabilities: [tools], reasoning: none}
  - id: draw
    surface: image
    variants:
      - {resolution: 1K, price_usd: 0.04, official_usd: 0.05}
      - {resolution: 4K, price_usd: 0.12}
    edit: true
    routes: [{provider: clips, model: v/draw, edit_model: v/draw/edit}]
  - id: film
    surface: video
    pricing: {per_second_usd: 0.1}
    seconds: {allowed: [8, 4, 6], default: 8}
    reference_image: optional
    routes: [{provider: clips, model: v/text, image_model: v/image, seconds_as: "8s"}]
`

/** An adapter that can do whatever a catalog promises on these surfaces. */
export const serving = (...surfaces: ReadonlyArray<Surface>): Adapter => ({
  surfaces: new Map(surfaces.map((surface) => [surface, everything]))
})

export const options = (over: Partial<CatalogOptions> & { readonly text?: string } = {}): CatalogOptions => ({
  source: { file: "catalog.yaml", text: over.text ?? small },
  environment: {},
  sandbox: false,
  // As in a gateway that speaks every wire there will be.
  adapters: wires(
    new Map([
      ["openai-chat", serving("chat")],
      ["openai-images", serving("image")],
      ["fal-queue", serving("image", "video")],
      ["openai-responses", serving("chat")],
      ["gemini", serving("chat", "image")],
      ["anthropic", serving("chat")],
      ["replicate", serving("image", "video")]
    ])
  ),
  ...over
})

export const keys = { FIRST_KEY: "k1", SECOND_KEY: "k2", CLIPS_KEY: "k3" }
export const load = (over?: Parameters<typeof options>[0]) => Catalog.make(options(over))
export const problemsOf = (text: string) =>
  load({ text }).pipe(
    Effect.flip,
    Effect.map(({ message }) => message.split("\n"))
  )
export const edited = (from: string, to: string): string => {
  assert.isTrue(small.includes(from), `nothing to edit: ${from}`)
  return small.replace(from, to)
}
export const lineOf = (text: string, part: string): number => text.slice(0, text.indexOf(part)).split("\n").length
export const routeIds = (model: Model | undefined) => model?.routes.map(({ id }) => id)
export const chat = (model: Model | undefined): ChatModel => {
  if (model?.surface !== "chat") throw new Error("no chat model")
  return model
}
