import { writeFileSync } from "node:fs"
import path from "node:path"
import { NodeContext } from "@effect/platform-node"
import { Effect } from "effect"
import { check } from "../../../src/cli/prices/Check.ts"
import { readFeed } from "../../../src/cli/prices/Feed.ts"
import { proposalText, propose } from "../../../src/cli/prices/Proposal.ts"
import { options } from "../../harness/fixtures/Catalogs.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

/** Proposals from a feed for a small catalog, and entries of LiteLLM's list. */

const text = `
providers:
  google: {adapter: gemini, base_url: "https://generativelanguage.googleapis.com", credential: K}
  openai: {adapter: openai-responses, base_url: "https://api.openai.com/v1", credential: K, headers: {x-secret: s3cret}}
  anthropic: {adapter: anthropic, base_url: "https://api.anthropic.com", credential: K}
  openrouter: {adapter: openai-chat, base_url: "https://openrouter.ai/api/v1", credential: K}
  fal: {adapter: fal-queue, base_url: "https://queue.fal.run", credential: K}
families:
  A: {sampling: true, max_output: 64000, capabilities: [vision], reasoning: [low]}
  B: {sampling: false}
models:
  - id: gemini-2.5-flash
    surface: chat
    family: A
    context_length: 1000000
    max_output: 65536
    capabilities: []
    reasoning: none
    pricing: {prompt_per_1m_usd: 0.3, completion_per_1m_usd: 2.5}
    routes: [{provider: google, model: gemini-2.5-flash}]
`

export const proposed = Effect.fnUntraced(function* (file: string, vendor?: string) {
  const feed = yield* readFeed(file)
  const proposals = yield* propose(options({ text }), feed, vendor)
  return { feed, proposals, yaml: proposalText(proposals, feed, "catalog.yaml") }
}, Effect.provide(NodeContext.layer))

export const checked = (yaml: string) => check(options({ text: yaml }))

export const proposedOf = Effect.fnUntraced(function* (document: unknown, vendor?: string) {
  const file = path.join(yield* temporaryDirectory, "feed.json")
  writeFileSync(file, typeof document === "string" ? document : JSON.stringify(document))
  return yield* proposed(file, vendor)
})

export const flat = { litellm_provider: "openai", mode: "chat", max_input_tokens: 100_000, max_output_tokens: 8000 }
export const priced = { ...flat, input_cost_per_token: 0.15e-6, output_cost_per_token: 6e-7 }
