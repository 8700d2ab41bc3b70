/** The published messages: the same text at every endpoint that can answer with them, and help only in `hint`. */

import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import type { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import type { BlockList } from "../../../src/services/access/BlockList.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire } from "../../harness/client/AdminClient.ts"
import { type Answer, bearer, block, call, post, soon } from "../../harness/client/HttpCalls.ts"
import { png } from "../../harness/fixtures/TinyMedia.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const picture = png.toString("base64")
const notPicture = Buffer.from("<html>").toString("base64")
const blockedAddress = { "x-forwarded-for": "203.0.113.9" }

interface Asked {
  readonly model?: string | undefined
  readonly prompt?: string | undefined
  /** In base64. */
  readonly image?: string | undefined
  readonly resolution?: string
}

interface Dialect {
  readonly name: string
  readonly path: string
  readonly surface: "chat" | "image" | "video"
  readonly methods: string
  readonly body: (asked: Asked) => object
}

const kinds = { chat: "a chat", image: "an image", video: "a video" } as const
const scopes = { chat: "chat", image: "images", video: "videos" } as const
const models = { chat: "talk", image: "draw", video: "film" } as const

const chatDialects = [false, true].flatMap((stream): ReadonlyArray<Dialect> => {
  const chat = { surface: "chat", methods: "POST" } as const
  const named = (name: string) => (stream ? `${name}, streamed` : name)
  return [
    {
      ...chat,
      name: named("chat completions"),
      path: "/v1/chat/completions",
      body: ({ image, model, prompt }) => ({
        model,
        stream,
        ...(prompt !== undefined && {
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: prompt },
                ...(image === undefined
                  ? []
                  : [{ type: "image_url", image_url: { url: `data:image/png;base64,${image}` } }])
              ]
            }
          ]
        })
      })
    },
    {
      ...chat,
      name: named("Responses"),
      path: "/v1/responses",
      body: ({ image, model, prompt }) => ({
        model,
        stream,
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: prompt },
              ...(image === undefined ? [] : [{ type: "input_image", image_url: `data:image/png;base64,${image}` }])
            ]
          }
        ]
      })
    },
    {
      ...chat,
      name: named("Messages"),
      path: "/v1/messages",
      body: ({ image, model, prompt }) => ({
        model,
        stream,
        max_tokens: 100,
        ...(prompt !== undefined && {
          messages: [
            {
              role: "user",
              content: [
                { type: "text", text: prompt },
                ...(image === undefined
                  ? []
                  : [{ type: "image", source: { type: "base64", media_type: "image/png", data: image } }])
              ]
            }
          ]
        })
      })
    }
  ]
})

const generations: Dialect = {
  name: "image generations",
  path: "/v1/images/generations",
  surface: "image",
  methods: "POST",
  body: (asked) => asked
}
const edits: Dialect = {
  ...generations,
  name: "image edits",
  path: "/v1/images/edits",
  body: ({ image = picture, ...asked }) => ({ ...asked, image })
}
const videos: Dialect = {
  name: "videos",
  path: "/v1/videos",
  surface: "video",
  methods: "GET and POST",
  body: (asked) => asked
}

const imageDialects = [generations, edits]
const mediaDialects = [...imageDialects, videos]
const dialects = [...chatDialects, ...mediaDialects]
const withMessages = chatDialects.filter(({ path }) => path !== "/v1/responses")

/** A model that no other request of the suite uses, so that no circuit breaker is open. */
const ownModel = (what: string, { name, surface }: Dialect) =>
  `${models[surface]}-${what}-${name.replaceAll(/\W+/g, "-").toLowerCase()}`

const route = (provider: string, surface: Dialect["surface"], preference = 1) => ({
  provider,
  model: "x",
  preference,
  ...(surface === "image" && { edit_model: "x" }),
  ...(surface === "video" && { image_model: "x" })
})

const fields = {
  chat: {
    family: "A",
    context_length: 100_000,
    max_output: 8_000,
    pricing: { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 },
    reasoning: "none",
    capabilities: ["vision"],
    image_tokens: 1_000,
    created: "2026-01-01"
  },
  image: { pricing: { per_image_usd: 0.04 }, edit: true },
  video: {
    pricing: { per_second_usd: 0.1 },
    seconds: { allowed: [4], default: 4 },
    reference_image: "optional"
  }
} as const

const modelOf = (id: string, surface: Dialect["surface"], providers: ReadonlyArray<string> = ["sandbox"]) => ({
  id,
  surface,
  ...fields[surface],
  routes: providers.map((provider, index) => route(provider, surface, index + 1))
})

const ownModels = ["failing", "unauthorized", "closed", "slow", "pair"].flatMap((what) =>
  dialects.map((dialect) =>
    modelOf(ownModel(what, dialect), dialect.surface, what === "pair" ? ["sandbox", "spare"] : undefined)
  )
)

const catalog = JSON.stringify({
  providers: { sandbox: { adapter: "sandbox" }, spare: { adapter: "sandbox" } },
  families: { A: { sampling: true, max_output_policy: "clamp" } },
  models: [
    ...(["chat", "image", "video"] as const).map((surface) => modelOf(models[surface], surface)),
    ...ownModels,
    { ...modelOf("plain", "image"), edit: false, routes: [{ provider: "sandbox", model: "x" }] },
    { ...modelOf("framed", "video"), reference_image: "required" }
  ]
})

const served = (env: Readonly<Record<string, string>> = {}) =>
  Served.layer(Effect.succeed({ catalog, env: { TRUST_PROXY: "1", ...env } }))

type Customer = Parameters<typeof openAccount>[0]

/** A request of a new customer, plain but for what is given. */
const ask = Effect.fnUntraced(function* (dialect: Dialect, asked: Asked = {}, options: Customer = {}) {
  const account = yield* openAccount(options)
  const usual = { model: models[dialect.surface], prompt: "a cat" }
  return yield* post(dialect.path)(account, dialect.body({ ...usual, ...asked }))
})

interface Quoted {
  readonly status: number
  readonly at: ReadonlyArray<Dialect>
  readonly message: string | ((dialect: Dialect) => string)
  /** Undefined if the error must have none. */
  readonly hint?: RegExp | ((dialect: Dialect) => RegExp)
  readonly provoke: (
    dialect: Dialect
  ) => Effect.Effect<Answer, unknown, ApiKeys | BlockList | Organizations | Served.ServedGateway | SqlClient.SqlClient>
}

const exactly = (text: string) => new RegExp(`^${text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}$`)

const amounts = /^The request needs (?:up to|at least) \d+(?:\.\d+)? USD; 0 USD is available\.$/

const reached = (period: "day" | "week" | "month" | "total"): Quoted => ({
  status: 402,
  at: dialects,
  message: `This key has reached its ${period} spend limit.`,
  hint:
    period === "total"
      ? /^0 of 0 USD is spent\.$/
      : /^0 of 0 USD is spent\. The limit resets at \d{4}-\d\d-\d\dT00:00:00Z\.$/,
  provoke: (dialect) => ask(dialect, {}, { cap: { amount: 0n, period } })
})

const elsewhere = { chat: "draw", image: "film", video: "talk" } as const
const elsewhereHints = {
  chat: "`draw` is an image model: use /v1/images/generations.",
  image: "`film` is a video model: use /v1/videos.",
  video: "`talk` is a chat model: use /v1/chat/completions."
} as const
const notHere = (model: string, { surface }: Dialect) =>
  `The model \`${model}\` does not exist or is not ${kinds[surface]} model.`

/** With the headers that a client would have. */
const bare = (dialect: Dialect, headers: Readonly<Record<string, string>>) =>
  call(dialect.path, { headers, body: dialect.body({ model: "talk", prompt: "x" }) })

const quoted: ReadonlyArray<Quoted> = [
  { status: 401, at: dialects, message: "Missing API key.", provoke: (dialect) => bare(dialect, {}) },
  {
    status: 401,
    at: dialects,
    message: "Invalid API key provided.",
    provoke: (dialect) => bare(dialect, bearer("ggw_nobody"))
  },
  {
    status: 401,
    at: dialects,
    message: "Invalid API key provided.",
    hint: exactly("The organization of this key is suspended."),
    provoke: Effect.fnUntraced(function* (dialect) {
      const account = yield* openAccount({})
      yield* Effect.orDie((yield* Organizations).suspend(account.org))
      return yield* post(dialect.path)(account, dialect.body({ model: models[dialect.surface], prompt: "x" }))
    })
  },
  {
    status: 402,
    at: dialects,
    message: "Insufficient credits.",
    hint: amounts,
    provoke: (dialect) => ask(dialect, {}, { nanoUsd: 0n })
  },
  ...(["day", "week", "month", "total"] as const).map(reached),
  {
    status: 403,
    at: dialects,
    message: ({ surface }) => `API key lacks scope: ${scopes[surface]}`,
    provoke: (dialect) => ask(dialect, {}, { scopes: [dialect.surface === "chat" ? "videos" : "chat"] })
  },
  {
    status: 403,
    at: dialects,
    message: "Access denied.",
    provoke: Effect.fnUntraced(function* (dialect) {
      yield* block("203.0.113.9")
      yield* soon(
        Effect.map(call("/healthz", { headers: blockedAddress }), ({ status }) => assert.strictEqual(status, 403))
      )
      return yield* bare(dialect, blockedAddress)
    })
  },
  {
    status: 404,
    at: dialects,
    message: (dialect) => notHere("nobody", dialect),
    provoke: (dialect) => ask(dialect, { model: "nobody" })
  },
  {
    status: 404,
    at: dialects,
    message: (dialect) => notHere(models[dialect.surface].toUpperCase(), dialect),
    hint: ({ surface }) => exactly(`Did you mean \`${models[surface]}\`?`),
    provoke: (dialect) => ask(dialect, { model: models[dialect.surface].toUpperCase() })
  },
  {
    status: 404,
    at: dialects,
    message: (dialect) => notHere(elsewhere[dialect.surface], dialect),
    hint: ({ surface }) => exactly(elsewhereHints[surface]),
    provoke: (dialect) => ask(dialect, { model: elsewhere[dialect.surface] })
  },
  {
    status: 404,
    at: dialects,
    message: "Unknown endpoint.",
    provoke: ({ path }) => call(`${path}/of/nothing`, { method: "POST" })
  },
  {
    status: 404,
    at: dialects,
    message: "Unknown endpoint.",
    hint: ({ path }) => exactly(`Did you mean ${path}?`),
    provoke: ({ path }) => call(`${path}x`, { method: "POST" })
  },
  {
    status: 404,
    at: dialects,
    message: "Unknown endpoint.",
    hint: ({ methods, path }) => exactly(`${path} accepts ${methods}.`),
    provoke: ({ path }) => call(path, { method: "PUT" })
  },
  {
    status: 429,
    at: dialects,
    message: "Rate limit exceeded.",
    hint: exactly("The limit of this key is 1 request per minute."),
    provoke: Effect.fnUntraced(function* (dialect) {
      const account = yield* openAccount({ rpm: 1 })
      yield* post(dialect.path)(account, {})
      const answer = yield* post(dialect.path)(account, dialect.body({ model: models[dialect.surface], prompt: "x" }))
      assert.strictEqual(answer.headers.get("retry-after"), "60")
      return answer
    })
  },
  {
    status: 400,
    at: dialects,
    message: "`model` is required.",
    provoke: (dialect) => ask(dialect, { model: undefined })
  },
  {
    status: 400,
    at: withMessages,
    message: "`messages` is required and must be a non-empty array.",
    provoke: (dialect) => ask(dialect, { prompt: undefined })
  },
  {
    status: 400,
    at: mediaDialects,
    message: "`prompt` is required.",
    provoke: (dialect) => ask(dialect, { prompt: undefined })
  },
  {
    status: 400,
    at: dialects,
    message: "Failed to process the reference image.",
    hint: exactly("The image is not a complete PNG, JPEG, WebP or GIF."),
    provoke: (dialect) => ask(dialect, { image: notPicture })
  },
  {
    status: 400,
    at: imageDialects,
    message: "Image editing is not available for `plain`.",
    provoke: (dialect) => ask(dialect, { model: "plain", image: picture })
  },
  {
    status: 400,
    at: imageDialects,
    message: "Resolution 4k is not available for `draw`.",
    provoke: (dialect) => ask(dialect, { resolution: "4K" })
  },
  {
    status: 400,
    at: [videos],
    message: "Text-to-video is not available for `framed` - a reference image is required.",
    provoke: (dialect) => ask(dialect, { model: "framed" })
  },
  {
    status: 400,
    at: dialects,
    message: "Content was rejected by the moderation system.",
    provoke: (dialect) => ask(dialect, { prompt: "[sandbox moderation]" })
  },
  {
    status: 400,
    at: dialects,
    message: "Upstream rejected the request.",
    provoke: (dialect) => ask(dialect, { prompt: "[sandbox status=400]" })
  },
  {
    status: 502,
    at: dialects,
    message: "The upstream provider returned an error.",
    provoke: (dialect) => ask(dialect, { model: ownModel("failing", dialect), prompt: "[sandbox status=500]" })
  },
  {
    status: 502,
    at: dialects,
    message: "Upstream authentication failed.",
    provoke: (dialect) => ask(dialect, { model: ownModel("unauthorized", dialect), prompt: "[sandbox status=401]" })
  },
  {
    status: 503,
    at: dialects,
    message: "No healthy provider is available for this model.",
    provoke: (dialect) => {
      const model = ownModel("closed", dialect)
      return Effect.zipRight(ask(dialect, { model, prompt: "[sandbox status=401]" }), ask(dialect, { model }))
    }
  },
  {
    status: 503,
    at: dialects,
    message: "All providers failed (last: spare 503).",
    provoke: (dialect) => ask(dialect, { model: ownModel("pair", dialect), prompt: "[sandbox status=503]" })
  },
  {
    status: 500,
    at: dialects,
    message: "Internal server error.",
    provoke: Effect.fnUntraced(function* (dialect) {
      const sql = yield* SqlClient.SqlClient
      const table = sql(dialect.surface === "video" ? "videos" : "open_holds")
      return yield* Effect.acquireUseRelease(
        sql`ALTER TABLE ${table} RENAME TO away`,
        () => ask(dialect),
        () => Effect.orDie(sql`ALTER TABLE away RENAME TO ${table}`)
      )
    })
  }
]

const casesOf = (rows: ReadonlyArray<Quoted>) =>
  rows.flatMap((row) =>
    row.at.map((dialect) => {
      const message = typeof row.message === "string" ? row.message : row.message(dialect)
      const hint = typeof row.hint === "function" ? row.hint(dialect) : row.hint
      return { message, hint, name: dialect.name, dialect, row }
    })
  )

/** The envelopes differ in what is around these two. */
const assertQuoted = (answer: Answer, { hint, message, row: { status } }: ReturnType<typeof casesOf>[number]) => {
  const { error } = JSON.parse(answer.text)
  assert.deepStrictEqual({ status: answer.status, message: error.message }, { status, message }, answer.text)
  if (hint === undefined) assert.notProperty(error, "hint")
  else assert.match(error.hint, hint)
}

withLayer(served())("the published message", (it) => {
  it.effect.each(casesOf(quoted))("$message comes from $name, with the hint $hint", function* (one) {
    assertQuoted(yield* one.row.provoke(one.dialect), one)
  })

  it.effect.each(["/models", "/models/talk", "/credits", "/videos", "/videos/vid_1", "/usage"])(
    "about a key comes from GET /v1%s too",
    function* (path) {
      const missing = yield* call(`/v1${path}`)
      const invalid = yield* call(`/v1${path}`, { headers: bearer("ggw_nobody") })
      assert.deepStrictEqual(
        [missing, invalid].map(({ text }) => JSON.parse(text).error.message),
        ["Missing API key.", "Invalid API key provided."]
      )
    }
  )

  it.effect("about an unknown path comes from the admin API too, with nothing of what there is", function* () {
    const { url } = yield* Served.ServedGateway
    const { token } = yield* hire("owner")
    for (const answer of [yield* adminAt(url, token)("/keyz"), yield* call("/admin/v2/keys"), yield* call("/consol")]) {
      const { error } = JSON.parse(answer.text)
      assert.deepStrictEqual([answer.status, error.message, error.hint], [404, "Unknown endpoint.", undefined])
    }
  })

  it.effect.each(dialects)("of an error is that of its quote for $name", function* ({ body, path, surface }) {
    const account = yield* openAccount({})
    const model = elsewhere[surface]
    const quote = yield* post("/v1/quote")(account, { endpoint: path, body: body({ model, prompt: "x" }) })
    const { error } = JSON.parse(quote.text)
    assert.strictEqual(error.message, `The model \`${model}\` does not exist or is not ${kinds[surface]} model.`)
    assert.strictEqual(error.hint, elsewhereHints[surface])
  })
})

/** A video is accepted before its provider has answered. */
const slow: ReadonlyArray<Quoted> = [
  {
    status: 504,
    at: [...chatDialects, ...imageDialects],
    message: "The request exceeded the allowed time.",
    provoke: (dialect) => ask(dialect, { model: ownModel("slow", dialect), prompt: "[sandbox delay=3600000]" })
  }
]

withLayer(served({ REQUEST_TIMEOUT: "1" }))("the published message", (it) => {
  it.effect.each(casesOf(slow))("$message comes from $name", function* (one) {
    assertQuoted(yield* one.row.provoke(one.dialect), one)
  })
})
