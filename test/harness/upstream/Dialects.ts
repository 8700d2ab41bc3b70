/** Wire formats of vendors: how their providers answer, fail and break, and a gateway with a provider of each format. */

import { Context, Effect, Layer } from "effect"
import type { Answer } from "../../contracts/ChatHarness.ts"
import type { ChatWire, EncodedAnswer } from "../../contracts/ChatHosts.ts"
import * as Anthropic from "../../providers/anthropic/Wire.ts"
import * as Gemini from "../../providers/gemini/Wire.ts"
import * as Chat from "../../providers/openai-chat/Wire.ts"
import * as Responses from "../../providers/openai-responses/Wire.ts"
import { type CatalogRoute, chatCatalog } from "../fixtures/ChatCatalog.ts"
import * as Served from "../gateway/ServedGateway.ts"
import * as Fake from "./FakeUpstream.ts"

/** A wire format, and how a provider with this format answers, fails and breaks. */
export interface Dialect {
  readonly name: string
  readonly baseUrl: (origin: string) => string
  readonly wire: (answer: Answer) => EncodedAnswer
  readonly wantsStream: (received: Fake.Received) => boolean
  /** Returns the body of an error, in the vendor's format and with its error code. */
  readonly error: (status: number) => unknown
  /** An event of a stream that reports a failure. */
  readonly errorEvent: string
}

/** A provider's message. No word of it may reach a client. */
const message = "hush: theirs"

const anthropicTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  429: "rate_limit_error",
  529: "overloaded_error"
}
const anthropicError = (status: number) => {
  return { type: "error", error: { type: anthropicTypes[status] ?? "api_error", message }, request_id: "req_hush" }
}

const openAiTypes: Readonly<Record<number, object>> = {
  401: { type: "invalid_request_error", code: "invalid_api_key" },
  429: { type: "tokens", code: "rate_limit_exceeded" }
}
const openAiError = (status: number) => ({ error: { message, type: "server_error", ...openAiTypes[status] } })

const googleErrors: Readonly<Record<number, object>> = {
  401: { status: "UNAUTHENTICATED" },
  429: { status: "RESOURCE_EXHAUSTED", details: Gemini.errors.limit.details }
}

/** A chunk without output, which Gemini sometimes sends. */
const quiet = Fake.event(Gemini.chunk([{ text: "" }]))

/** Returns a wire format whose providers fail as in the contract tests. */
const spokenBy = ({ adapter, basePath, encode, errorInside, refuse, wantsStream }: ChatWire): Dialect => ({
  name: adapter,
  baseUrl: (origin) => `${origin}${basePath}`,
  wire: encode,
  wantsStream,
  error: () => refuse("server").body,
  errorEvent: errorInside.event
})

/** The wire formats that tests of complete gateways use. Each supports most features. */
export const dialects: ReadonlyArray<Dialect> = [
  {
    ...spokenBy(Anthropic.anthropic),
    error: anthropicError,
    errorEvent: `event: error\n${Fake.event(anthropicError(529))}`
  },
  {
    ...spokenBy(Gemini.gemini),
    wire: (answer) => ({ ...Gemini.wire(answer), opening: [quiet] }),
    error: (status) => ({ error: { code: status, status: "UNAVAILABLE", message, ...googleErrors[status] } }),
    errorEvent: Fake.event({ error: { code: 500, status: "INTERNAL", message } })
  },
  { ...spokenBy(Responses.openAiResponses), error: openAiError },
  { ...spokenBy(Chat.openAiChat), error: openAiError, errorEvent: Fake.event(openAiError(500)) }
]

export const dialectOf = (wire: ChatWire): Dialect =>
  dialects.find(({ name }) => name === wire.adapter) ?? spokenBy(wire)

/** Ids and names in the provider's answers above. None may reach a client. */
export const theirs = ["hush", "msg_1", "resp_1", "rs_1", "claude-model-1", "gemini-3-test", "vendor/", "EqQBCgIYAhIM"]

/** Sends one reply to a request without a stream and another to a request with one. */
const either =
  ({ wantsStream }: Dialect, piece: Fake.Reply, stream: Fake.Reply): Fake.Reply =>
  (response, received) =>
    (wantsStream(received) ? stream : piece)(response, received)

export const answers = (dialect: Dialect, answer: Answer): Fake.Reply => {
  const { body, end, opening, output } = dialect.wire(answer)
  return either(dialect, Fake.json(200, body), Fake.sse(...opening, ...output, ...end))
}

const unseen: Answer = { content: "never seen", finish: "stop" }

const refuses =
  (status: number) =>
  (dialect: Dialect): Fake.Reply =>
    Fake.json(status, dialect.error(status), { "x-hush": "hush", "request-id": "hush" })

export interface Outage {
  readonly what: string
  /** The reply of the provider. Undefined if no server listens. */
  readonly reply: ((dialect: Dialect) => Fake.Reply) | undefined
  /** The outcome of the attempt in the request log. */
  readonly outcome: string
}

/** All failures before the first output. */
export const outages: ReadonlyArray<Outage> = [
  { what: "answers 503", reply: refuses(503), outcome: "retry" },
  { what: "answers 529", reply: refuses(529), outcome: "retry" },
  { what: "answers 429", reply: refuses(429), outcome: "limit" },
  { what: "answers 401", reply: refuses(401), outcome: "account" },
  { what: "takes no connection", reply: undefined, outcome: "network" },
  {
    what: "answers garbage",
    reply: (dialect) => {
      const text = JSON.stringify(dialect.wire(unseen).body).slice(0, 60)
      return either(dialect, Fake.text(200, "application/json", text), Fake.sse(`data: ${text}\n\n`))
    },
    outcome: "retry"
  },
  {
    what: "breaks off before it has said anything",
    reply: (dialect) => {
      const { body, opening } = dialect.wire(unseen)
      const begun = Fake.steps({ type: "application/json" }, JSON.stringify(body).slice(0, 60), Fake.cut)
      return either(dialect, begun, Fake.sse(...opening, Fake.cut))
    },
    outcome: "network"
  },
  { what: "answers 200 with an error in it", reply: (dialect) => Fake.json(200, dialect.error(500)), outcome: "retry" },
  {
    what: "says in its first events that it failed",
    reply: (dialect) => {
      const { opening } = dialect.wire(unseen)
      return either(dialect, Fake.json(200, dialect.error(500)), Fake.sse(...opening, dialect.errorEvent))
    },
    outcome: "retry"
  }
]

/** All failures after the first output. */
export const breaks: ReadonlyArray<{ readonly what: string; readonly rest: (dialect: Dialect) => Fake.Step }> = [
  { what: "loses its connection", rest: () => Fake.cut },
  { what: "ends without its end mark", rest: () => "" },
  { what: "says that it failed", rest: ({ errorEvent }) => errorEvent },
  { what: "turns into garbage", rest: () => "data: {hush\n\n" }
]

/** Returns a stream with the complete output of an answer but without its end. */
export const breaking = (dialect: Dialect, answer: Answer, rest: Fake.Step): Fake.Reply => {
  const { opening, output } = dialect.wire(answer)
  return Fake.sse(...opening, ...output, rest)
}

/** One scripted provider per wire format, which the tests of a file share. */
export class DialectHosts extends Context.Tag("test/DialectHosts")<
  DialectHosts,
  { readonly of: (dialect: Dialect) => Fake.FakeUpstream }
>() {}

const hosts = (among: ReadonlyArray<Dialect>) =>
  Layer.scoped(
    DialectHosts,
    Effect.gen(function* () {
      const byName = new Map<string, Fake.FakeUpstream>()
      for (const { name } of among) byName.set(name, yield* Fake.make)
      const nobody = yield* Fake.make
      return { of: ({ name }) => byName.get(name) ?? nobody }
    })
  )

/** Returns a route to a provider of the wire format, or to a port without a server. None of its names may reach a client. */
export const routeTo = ({ name }: Dialect, more: { readonly preference?: number; readonly gone?: boolean } = {}) => {
  const { gone = false, ...rest } = more
  return { provider: `hush-${name}${gone ? "-gone" : ""}`, model: "hush-model", ...rest }
}

/** A gateway whose models use these providers. */
export const gateway = (
  models: Readonly<Record<string, ReadonlyArray<CatalogRoute & { readonly cost?: object }>>>,
  env: Readonly<Record<string, string>> = {},
  among: ReadonlyArray<Dialect> = dialects
) =>
  Served.layer(
    Effect.map(DialectHosts, ({ of }) => {
      const provider = (dialect: Dialect, url: string) => {
        return { adapter: dialect.name, base_url: dialect.baseUrl(url), credential: "HUSH_KEY" }
      }
      const open = among.map((one) => [routeTo(one).provider, provider(one, of(one).url)] as const)
      const gone = among.map(
        (one) => [routeTo(one, { gone: true }).provider, provider(one, "http://127.0.0.1:1")] as const
      )
      return {
        catalog: chatCatalog(Object.fromEntries([...open, ...gone]), models),
        env: { HUSH_KEY: "sk-hush", LOG_LEVEL: "none", ...env }
      }
    })
  ).pipe(Layer.provideMerge(hosts(among)))
