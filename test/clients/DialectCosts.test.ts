import { NanoUsd } from "../../src/domain/Money.ts"
import type { Answer } from "../contracts/ChatHarness.ts"
import { calling, drained } from "../harness/client/OfficialClients.ts"
import { price } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answers, DialectHosts, dialects, gateway, routeTo } from "../harness/upstream/Dialects.ts"
import { event, json, type Reply, sse } from "../harness/upstream/FakeUpstream.ts"
import * as Anthropic from "../providers/anthropic/Wire.ts"
import { chunk, usageOnWire as geminiUsage } from "../providers/gemini/Wire.ts"
import { usageOnWire as chatUsage } from "../providers/openai-chat/Wire.ts"
import * as Responses from "../providers/openai-responses/Wire.ts"

/** What the operator pays: in USD per million tokens, hence so many thousand nano-dollars a token. */
const cost = { prompt_per_1m_usd: 1, completion_per_1m_usd: 2 }
const costOf = (prompt: number, completion: number) => NanoUsd(BigInt(prompt * 1_000 + completion * 2_000))

const counted: Answer = { finish: "stop", usage: { prompt: 30, completion: 4, cached: 0, cacheWrite: 0, reasoning: 0 } }

interface Refused {
  readonly name: string
  readonly piece: Reply
  readonly stream: Reply
  /** What the stream's host counts by then. */
  readonly streamed: NanoUsd
}

const nameless = Anthropic.wire({ ...counted, toolCalls: [{ id: "toolu_1", name: "", arguments: "{}" }] })
const failed: Responses.WireResponse = {
  ...Responses.whole(counted),
  status: "failed",
  error: { code: "server_error", message: "m" }
}
const malformed = chunk([], "MALFORMED_FUNCTION_CALL", geminiUsage(counted))
const broken = {
  choices: [{ index: 0, message: { content: "" }, delta: {}, finish_reason: "error" }],
  usage: chatUsage(counted)
}

/** Each vendor's way to count tokens for an answer that is none. */
const refusals: ReadonlyArray<Refused> = [
  {
    name: "anthropic",
    piece: json(200, nameless.body),
    stream: sse(...nameless.opening, ...nameless.output),
    streamed: costOf(30, 0)
  },
  { name: "gemini", piece: json(200, malformed), stream: sse(event(malformed)), streamed: costOf(30, 4) },
  {
    name: "openai-responses",
    piece: json(200, failed),
    stream: sse(...Responses.written([{ type: "response.failed", response: failed }])),
    streamed: costOf(30, 4)
  },
  { name: "openai-chat", piece: json(200, broken), stream: sse(event(broken)), streamed: costOf(30, 4) }
]

const said: Answer = {
  content: "Servus.",
  finish: "stop",
  usage: { prompt: 10, completion: 3, cached: 0, cacheWrite: 0, reasoning: 0 }
}

const pairs = refusals.flatMap((refusal) => {
  const first = dialects.find(({ name }) => name === refusal.name) ?? assert.fail(refusal.name)
  const next = dialects[(dialects.indexOf(first) + 1) % dialects.length] ?? first
  return [false, true].map((stream) => ({
    ...refusal,
    first,
    next,
    streams: stream,
    model: `${refusal.name}-${stream}`
  }))
})
const models = pairs.map(({ first, model, next }) => {
  const routes = [routeTo(first), routeTo(next, { preference: 2 })].map((route) => ({ ...route, cost }))
  return [model, routes] as const
})

withLayer(gateway(Object.fromEntries(models)))("an answer that is refused", (it) => {
  it.effect.each(pairs)("is logged with its cost when the host has reported usage: $model", function* (pair) {
    const { first, model, next, piece, stream, streamed, streams } = pair
    const hosts = yield* DialectHosts
    const { openai, spent } = yield* Served.customer()
    yield* hosts.of(first).script(streams ? stream : piece)
    yield* hosts.of(next).script(answers(next, said))
    const body = { model, messages: [{ role: "user" as const, content: "hi" }] }
    const { data, response } = yield* calling(() =>
      openai.chat.completions.create({ ...body, stream: streams }).withResponse()
    )
    if ("controller" in data) assert.isUndefined((yield* drained(data)).error)
    const { attempts, charge, cost: served } = yield* Served.logged(response.headers.get("x-request-id"))
    assert.deepStrictEqual(
      attempts.map((one) => [one.outcome, one.cost]),
      [
        ["retry", streams ? streamed : costOf(30, 4)],
        ["ok", undefined]
      ]
    )
    assert.deepStrictEqual<ReadonlyArray<bigint | null>>(
      [served, charge, yield* spent],
      [costOf(10, 3), 10n * price.prompt + 3n * price.completion, charge]
    )
  })
})
