import { writeFileSync } from "node:fs"
import path from "node:path"
import { NodeContext } from "@effect/platform-node"
import { Effect, TestClock } from "effect"
import { check } from "../../../src/cli/prices/Check.ts"
import { readFeed } from "../../../src/cli/prices/Feed.ts"
import { options } from "../../harness/fixtures/Catalogs.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const chat = (id: string, route: string) => `
  - id: ${id}
    surface: chat
    family: A
    context_length: 100000
    max_output: 8000
    pricing: {prompt_per_1m_usd: 1, completion_per_1m_usd: 1}
    routes: [{provider: ${route}, model: ${id}}]`

const catalog = (provider: string, host: string, ids: ReadonlyArray<string>) => `
providers:
  ${provider}: {adapter: openai-chat, base_url: "https://${host}/v1", credential: K}
families:
  A: {sampling: true}
models:${ids.map((id) => chat(id, provider)).join("")}
`

const retiredOf = Effect.fnUntraced(function* (text: string, document: unknown) {
  const file = path.join(yield* temporaryDirectory, "feed.json")
  writeFileSync(file, JSON.stringify(document))
  yield* TestClock.setTime(Date.parse("2026-06-01T12:00:00Z"))
  const { feed } = yield* check(options({ text }), yield* readFeed(file))
  return feed?.retired.map(({ model, on, retired }) => [model, retired, on])
}, Effect.provide(NodeContext.layer))

const ids = ["m-1", "m-2", "m-3", "m-4"]
const openai = { litellm_provider: "openai", mode: "chat", input_cost_per_token: 1e-7, output_cost_per_token: 1e-7 }
const listed = (...names: ReadonlyArray<string>) => Object.fromEntries(names.map((id) => [id, openai]))

describe("retired models", () => {
  it.scoped("are certain by a date that has passed, and announced by one to come", function* () {
    const feed = {
      ...listed(...ids),
      "m-1": { ...openai, deprecation_date: "2026-05-31" },
      "m-2": { ...openai, deprecation_date: "2026-06-02" },
      "m-3": { ...openai, deprecation_date: "soon" }
    }
    assert.deepStrictEqual(yield* retiredOf(catalog("openai", "api.openai.com", ids), feed), [
      ["m-1", "certain", "2026-05-31"],
      ["m-2", "announced", "2026-06-02"]
    ])
  })

  it.scoped("are possible if the feed has three siblings but not them", function* () {
    const text = catalog("openai", "api.openai.com", ids)
    assert.deepStrictEqual(yield* retiredOf(text, listed("m-1", "m-2", "m-3")), [["m-4", "possible", null]])
    assert.deepStrictEqual(yield* retiredOf(text, listed("m-1", "m-2")), [])
  })
})
