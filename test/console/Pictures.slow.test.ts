import { statSync } from "node:fs"
import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { chat, talk } from "../harness/client/HttpCalls.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { openConsole } from "./ConsolePage.ts"
import { addHistory } from "./History.ts"
import { awaitVideos, makeTraffic } from "./Traffic.ts"

/** Models at current prices. The sandbox plays the providers. */
const catalog = `
providers:
  google: {adapter: sandbox}
  openrouter: {adapter: sandbox}
  anthropic: {adapter: sandbox}
  fal: {adapter: sandbox}
families:
  A: {sampling: true, max_output_policy: clamp}
models:
  - id: gemini-3.6-flash
    surface: chat
    family: A
    context_length: 1048576
    max_output: 65536
    pricing: {prompt_per_1m_usd: 1.5, completion_per_1m_usd: 7.5, cached_prompt_per_1m_usd: 0.15}
    reasoning: none
    capabilities: []
    image_tokens: 2500
    created: 2026-07-21
    routes:
      - {provider: google, model: gemini-3.6-flash, cost: {prompt_per_1m_usd: 1.2, completion_per_1m_usd: 6, cached_prompt_per_1m_usd: 0.12}}
      - {provider: openrouter, model: google/gemini-3.6-flash, preference: 2, cost: {prompt_per_1m_usd: 1.4, completion_per_1m_usd: 7, cached_prompt_per_1m_usd: 0.14}}
  - id: claude-sonnet-5
    surface: chat
    family: A
    context_length: 1000000
    max_output: 64000
    pricing: {prompt_per_1m_usd: 3, completion_per_1m_usd: 15, cached_prompt_per_1m_usd: 0.3}
    reasoning: none
    capabilities: []
    image_tokens: 2500
    created: 2026-06-01
    routes:
      - {provider: anthropic, model: claude-sonnet-5, cost: {prompt_per_1m_usd: 2.4, completion_per_1m_usd: 12, cached_prompt_per_1m_usd: 0.24}}
      - {provider: openrouter, model: anthropic/claude-sonnet-5, preference: 2, cost: {prompt_per_1m_usd: 2.7, completion_per_1m_usd: 13.5, cached_prompt_per_1m_usd: 0.27}}
  - id: gemini-3-pro-image
    surface: image
    variants: [{resolution: 1K, price_usd: 0.15}, {resolution: 4K, price_usd: 0.3}]
    edit: true
    routes: [{provider: google, model: gemini-3-pro-image, cost: {variants: [{resolution: 1K, price_usd: 0.134}, {resolution: 4K, price_usd: 0.24}]}}]
  - id: veo-3.1-fast-generate-001
    surface: video
    pricing: {per_second_usd: 0.15}
    seconds: {allowed: [4, 6, 8], default: 8}
    reference_image: optional
    routes: [{provider: fal, model: fal-ai/veo3.1/fast, image_model: fal-ai/veo3.1/fast/image-to-video, cost: {per_second_usd: 0.1}}]
`

const gateway = Served.layer(Effect.succeed({ catalog }))

const customers = [
  ["Northwind Studio", 250_000_000_000n],
  ["Contoso Labs", 90_000_000_000n],
  ["Fabrikam", 120_000_000_000n],
  ["Tailspin Games", 40_000_000_000n]
] as const

const viewport = { width: 1440, height: 900 }
const mostBytes = 150_000

/** `npm run pictures` renews the pictures of the docs. */
withLayer(gateway)("the pictures of the docs", (it) => {
  it.scoped.skipIf(!process.env["PICTURES"])(
    "show a busy gateway with a valid ledger",
    function* () {
      const sql = yield* SqlClient.SqlClient
      const organizations = yield* Organizations
      const keys = yield* ApiKeys
      const ledger = yield* LedgerAdmin
      for (const [name, credits] of customers) {
        const { id } = yield* organizations.create({ name, credits: NanoUsd(credits) })
        const { secret } = yield* keys.create({ org: id, name: "production" })
        yield* keys.create({ org: id, name: "staging", rpm: 60 })
        const customer = { secret: Redacted.value(secret) }
        yield* makeTraffic(customer)
        for (const question of [
          "What is a ledger?",
          "Summarise the last quarter.",
          "[sandbox status=503 routes=1] Go on."
        ])
          yield* chat(customer, talk("claude-sonnet-5", question), { headers: { "user-agent": `${name} 2.1` } })
      }
      yield* awaitVideos
      yield* addHistory(14)
      assert.deepStrictEqual((yield* ledger.verify).violations, [])

      const [row] = yield* sql<{ id: string }>`
          SELECT id FROM request_log WHERE status = 200 AND surface = 'chat' AND at > now() - interval '10 minutes'
          ORDER BY jsonb_array_length(attempts) DESC, charge DESC LIMIT 1`
      const [org] = yield* sql<{ id: string }>`SELECT id FROM organizations WHERE name = ${customers[0][0]}`
      const pictures = [
        ["now", "#/", 900],
        ["request", `#/requests/${row?.id}`, 900],
        ["usage", "#/usage", 760],
        ["organization", `#/organizations/${org?.id}`, 720]
      ] as const
      const { operator, page, url } = yield* openConsole({ colorScheme: "light", viewport })
      yield* sql`UPDATE operators SET name = 'ada' WHERE id = ${operator.id}`
      yield* Effect.promise(async () => {
        for (const [name, hash, height] of pictures) {
          const path = `docs/pictures/${name}.png`
          await page.goto(`${url}/console${hash}`)
          await page.reload()
          await page.waitForLoadState("networkidle")
          assert.deepStrictEqual(await page.getByRole("alert").allInnerTexts(), [])
          await page.screenshot({ path, clip: { x: 0, y: 0, width: viewport.width, height } })
          assert.isBelow(statSync(path).size, mostBytes, name)
        }
      })
    },
    240_000
  )
})
