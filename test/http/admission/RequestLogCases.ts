import { NanoUsd, zero } from "../../../src/domain/Money.ts"
import type { RequestRow } from "../../../src/services/telemetry/RequestLog.ts"
import type { openAccount } from "../../harness/client/Account.ts"
import { talk } from "../../harness/client/HttpCalls.ts"
import { gif } from "../../harness/fixtures/TinyMedia.ts"
import { usualPrice } from "../../harness/gateway/ImageGateway.ts"
import { cut, event, json, type Reply, sse, text } from "../../harness/upstream/FakeUpstream.ts"
import { asked, paints } from "../../harness/upstream/Replies.ts"
import { answers, chunk, streams, usualCharge } from "../../harness/upstream/Upstreams.ts"

export const word = "zebra-crossing-asked"
export const told = "zebra-crossing-told"
export const image = gif.toString("base64")
/** Of one picture, to the operator. */
export const cost = NanoUsd(30_000_000n)

export interface Try {
  readonly route: string
  readonly provider: string
  readonly outcome: string
  readonly status?: number
  readonly cost?: bigint
}
export type Expected = Partial<Omit<RequestRow, "attempts">> & { readonly attempts?: ReadonlyArray<Try> }

interface Case {
  readonly what: string
  readonly account?: Parameters<typeof openAccount>[0]
  readonly body: unknown
  readonly replies?: ReadonlyArray<Reply>
  readonly row: Expected
}

const tried = (model: string, provider: string, outcome: string, status?: number): Try => ({
  route: `${model}@${provider}`,
  provider,
  outcome,
  ...(status === undefined ? {} : { status })
})

const tokenless = { promptTokens: null, completionTokens: null, cachedTokens: null, reasoningTokens: null }
const free = { ...tokenless, charge: zero, cost: null, notes: [], firstByteMs: null }
export const unread = { ...free, model: null, route: null, attempts: [] }
const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, reasoningTokens: 0 }
const done = { status: 200, code: null, notes: [] }
const spoken = { ...done, ...usage, charge: NanoUsd(usualCharge) }
export const drawn = { ...done, ...tokenless, stream: false, charge: NanoUsd(usualPrice) }

export const say = (model: string, over: object = {}) => ({ ...talk(model, word), ...over })
export const imagine = (model: string, over: object = {}) => asked(model, { prompt: word, ...over })

/** What ends in the same way whatever is asked for; `main` and `pair` are models of one route and of two. */
const common = (surface: {
  readonly ask: (model: string, over?: object) => object
  readonly outOfRange: object
  readonly scopes: ReadonlyArray<"chat" | "images" | "videos">
  readonly reply: Reply
  readonly served: Expected
}): ReadonlyArray<Case> => {
  const { ask, outOfRange, reply, scopes, served } = surface
  const body = ask("main")
  const refused = (what: string, status: number, code: string | null, more: Partial<Case> = {}): Case => ({
    what,
    body,
    ...more,
    row: { ...unread, status, code, ...more.row }
  })
  const row = { model: "main" }
  return [
    refused("no JSON", 400, null, { body: `{"${word}` }),
    refused("a field out of its range", 400, null, { body: ask("main", outOfRange), row }),
    refused("an unknown model", 404, "model_not_found", { body: ask("nobody"), row: { model: "nobody" } }),
    refused("too large a body", 413, "request_too_large", { body: word.repeat(1_000) }),
    refused("no scope", 403, "insufficient_scope", { account: { scopes } }),
    refused("no credits", 402, "insufficient_quota", { account: { nanoUsd: 0n }, row }),
    refused("a cap", 402, "spend_limit_exceeded", { account: { cap: { amount: 0n, period: "day" } }, row }),
    {
      what: "a move to the next route",
      body: ask("pair"),
      replies: [json(503, {}), reply],
      row: {
        ...served,
        route: "pair@second",
        attempts: [tried("pair", "first", "retry", 503), tried("pair", "second", "ok", 200)]
      }
    },
    {
      what: "no route left",
      body: ask("pair"),
      replies: [json(429, {}), (response) => void response.socket?.destroy()],
      row: {
        ...free,
        status: 503,
        code: "no_provider_available",
        route: null,
        attempts: [tried("pair", "first", "limit", 429), tried("pair", "second", "network")]
      }
    }
  ]
}

const failed = (what: string, reply: Reply, attempt: Try): Case => ({
  what,
  body: say("weak"),
  replies: [reply],
  row: { ...free, status: 502, code: "upstream_error", attempts: [attempt] }
})
const broken = (what: string, rest: string | typeof cut): Case => ({
  what,
  body: say("breaking", { stream: true }),
  replies: [sse(chunk({ content: told }), rest)],
  row: { status: 200, code: "stream_error", route: "breaking@first", charge: zero, cost: null }
})
const weak = tried("weak", "first", "retry", 200)

export const chats: ReadonlyArray<Case> = [
  ...common({
    ask: say,
    outOfRange: { temperature: 9 },
    scopes: ["videos"],
    reply: answers(told),
    served: spoken
  }),
  {
    what: "an answer",
    body: say("main"),
    replies: [answers(told)],
    row: {
      ...spoken,
      model: "main",
      route: "main@first",
      stream: false,
      cost: NanoUsd(10_000n),
      attempts: [tried("main", "first", "ok", 200)]
    }
  },
  {
    what: "a stream",
    body: say("main", { stream: true }),
    replies: [streams(told, told)],
    row: { ...spoken, route: "main@first", stream: true }
  },
  {
    what: "a model that cannot",
    body: say("main", { web_search: true, stream: true }),
    row: { ...unread, status: 400, code: null, model: "main", stream: true }
  },
  {
    what: "a rejection",
    body: say("main"),
    replies: [json(422, { error: { message: "no" } })],
    row: { ...free, status: 400, code: null, model: "main", attempts: [tried("main", "first", "request", 422)] }
  },
  failed("a provider's error", json(500, {}), tried("weak", "first", "retry", 500)),
  failed("an invalid answer", json(200, { [told]: told }), weak),
  failed("a page", text(200, "text/html", told), weak),
  broken("a stream that breaks", cut),
  broken("a stream that turns into garbage", `data: {${told}\n\n`),
  broken("a stream with an error in it", event({ error: { message: "no", code: 500 } }))
]

export const images: ReadonlyArray<Case> = [
  ...common({ ask: imagine, outOfRange: { n: 2 }, scopes: ["chat", "videos"], reply: paints(), served: drawn }),
  {
    what: "an image",
    body: imagine("main"),
    replies: [paints()],
    row: { ...drawn, model: "main", route: "main@first", cost, attempts: [tried("main", "first", "ok", 200)] }
  },
  {
    what: "an edit",
    body: imagine("pair", { image }),
    replies: [paints()],
    row: { ...drawn, model: "pair", route: "pair@first", cost: null, attempts: [tried("pair", "first", "ok", 200)] }
  },
  {
    what: "an invalid reference",
    body: imagine("main", { image: Buffer.from(word).toString("base64") }),
    row: { ...unread, status: 400, code: null, model: "main" }
  },
  {
    what: "moderation",
    body: imagine("main"),
    replies: [json(400, { error: { message: "no", code: "moderation_blocked" } })],
    row: { ...free, status: 400, code: null, route: null, attempts: [tried("main", "first", "moderation", 400)] }
  },
  { ...failed("a page for a picture", paints(Buffer.from(`<html>${word}`)), { ...weak, cost }), body: imagine("weak") }
]
