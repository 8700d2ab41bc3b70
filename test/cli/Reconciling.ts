import { writeFileSync } from "node:fs"
import path from "node:path"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../../src/database/Database.ts"
import { logRequest } from "../harness/database/Rows.ts"
import { assert } from "../harness/It.ts"
import { Cli } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
/** The command and the database that it reads. */
export const suite = Layer.provideMerge(database, Cli.layer)

const catalog = `
providers:
  router: {adapter: openai-chat, base_url: https://openrouter.ai/api/v1, credential: ROUTER_KEY}
  openai: {adapter: openai-chat, base_url: https://api.openai.com/v1, credential: ACME_KEY}
  claude: {adapter: anthropic, base_url: https://api.anthropic.com, credential: CLAUDE_KEY}
  renders: {adapter: openai-chat, base_url: https://queue.fal.run, credential: FAL_KEY}
  grok: {adapter: openai-chat, base_url: https://api.x.ai/v1, credential: XAI_KEY}
  acme: {adapter: openai-chat, base_url: https://acme.test/v1, credential: OTHER_KEY}
families:
  A: {sampling: false, max_output_policy: clamp}
models:
  - id: talk
    surface: chat
    family: A
    context_length: 1000000
    max_output: 64000
    pricing: {prompt_per_1m_usd: 2, completion_per_1m_usd: 4}
    reasoning: none
    capabilities: [tools]
    created: 2026-07-21
    routes:
      - {provider: openai, model: gpt-9}
      - {provider: router, model: maker/gpt-9}
      - {provider: claude, model: claude-9}
      - {provider: renders, model: fal-ai/nine}
      - {provider: grok, model: grok-9}
      - {provider: acme, model: nine}
`

export const hour = 3_600_000
export const day = 24 * hour
// Recent enough for a vendor that keeps 30 days, old enough to be final.
export const from = Math.floor(Date.now() / day) * day - 5 * day
export const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10)
export const secret = "admin-secret-4711"

const Document = Schema.parseJson(
  Schema.Struct({
    provider: Schema.String,
    since: Schema.Number,
    until: Schema.Number,
    tolerance: Schema.Number,
    verdicts: Schema.Record({ key: Schema.String, value: Schema.Number }),
    ours_usd: Schema.Number,
    theirs_usd: Schema.Number,
    outside: Schema.NullOr(Schema.Struct({ rows: Schema.Number, first: Schema.Number, last: Schema.Number })),
    data: Schema.Array(
      Schema.Struct({
        at: Schema.Number,
        model: Schema.NullOr(Schema.String),
        request_id: Schema.NullOr(Schema.String),
        ours_usd: Schema.NullOr(Schema.Number),
        theirs_usd: Schema.NullOr(Schema.Number),
        ours_tokens: Schema.NullOr(Schema.Number),
        theirs_tokens: Schema.NullOr(Schema.Number),
        verdict: Schema.String
      })
    )
  })
)

const period = ["--since", dateOf(from), "--until", dateOf(from + 2 * day)]

export const reconcile = Effect.fnUntraced(function* (
  provider: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
) {
  const { directory, run } = yield* Cli
  writeFileSync(path.join(directory, "books.yaml"), catalog)
  const finished = yield* run(["reconcile", provider, ...period, ...args], {
    CATALOG_FILE: "books.yaml",
    ...environment
  })
  assert.notInclude(finished.stdout + finished.stderr, secret)
  return finished
})

export const documentOf = (provider: string, baseUrl: string, environment: Readonly<Record<string, string>>) =>
  jsonOf(provider, ["--base-url", baseUrl], environment)

export const jsonOf = Effect.fnUntraced(function* (
  provider: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
) {
  const finished = yield* reconcile(provider, [...args, "--json"], environment)
  const document = yield* Effect.orDie(Schema.decode(Document)(finished.stdout))
  return { ...document, code: finished.code, stderr: finished.stderr }
})

export const logAt = (provider: string, at: number, more: Readonly<Record<string, unknown>> = {}) => {
  const route = `talk@${provider}`
  return logRequest({
    at: new Date(at),
    model: "talk",
    route,
    provider,
    attempts: [{ route, provider, outcome: "ok", ms: 1 }],
    prompt_tokens: 1_000,
    completion_tokens: 100,
    cost: 2_000_000_000,
    ...more
  })
}

export const rowsOf = (data: ReadonlyArray<{ readonly model: string | null; readonly verdict: string }>) =>
  data.map(({ model, verdict }) => [model, verdict])
