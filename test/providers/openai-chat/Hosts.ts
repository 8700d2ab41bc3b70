import { LLMock } from "@copilotkit/aimock"
import { Deferred, Effect, Predicate, Redacted, type Scope } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as OpenAiChat from "../../../src/providers/openai-chat/OpenAiChat.ts"
import {
  type Answer,
  answered,
  type Harness,
  type Host,
  type Turn,
  type Understood,
  type Weather
} from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"

export const secret = "sk-upstream-secret"

export const routeTo = (baseUrl: string, options: Route["options"] = {}): Route => ({
  id: "ours@fake",
  provider: { name: "fake", adapter: "openai-chat", baseUrl, credential: Redacted.make(secret), headers: {} },
  model: "vendor/model-1",
  preference: 1,
  weight: 1,
  capabilities: undefined,
  cost: undefined,
  options
})

const record = (value: unknown): Record<PropertyKey, unknown> => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])
const string = (value: unknown): string => (typeof value === "string" ? value : "")
const text = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => string(record(part).text))
        .join("")

const turnOf = (value: unknown): Turn => {
  const message = record(value)
  const role = message.role === "assistant" || message.role === "tool" ? message.role : "user"
  return {
    role,
    text: text(message.content),
    images: list(message.content).flatMap((part) => {
      const { url } = record(record(part).image_url)
      return typeof url === "string" ? [url] : []
    }),
    calls: list(message.tool_calls).map((call) => {
      const { arguments: given, name } = record(record(call).function)
      return { id: string(record(call).id), name: string(name), arguments: JSON.parse(string(given)) }
    }),
    answers: typeof message.tool_call_id === "string" ? message.tool_call_id : undefined
  }
}

export const understood = (given: unknown): Understood => {
  const body = record(given)
  const messages = list(body.messages).map(record)
  const choice = body.tool_choice
  return {
    model: string(body.model),
    stream: body.stream === true,
    system: messages
      .filter(({ role }) => role === "system")
      .map(({ content }) => text(content))
      .join(""),
    turns: messages.filter(({ role }) => role !== "system").map(turnOf),
    maxTokens: typeof body.max_tokens === "number" ? body.max_tokens : undefined,
    stop: list(body.stop).map(string),
    tools: list(body.tools).map((tool) => {
      const { name, parameters } = record(record(tool).function)
      return { name: string(name), parameters }
    }),
    toolChoice:
      choice === "auto" || choice === "none" || choice === "required"
        ? choice
        : choice === undefined
          ? undefined
          : { name: string(record(record(choice).function).name) },
    schema: record(record(body.response_format).json_schema).schema
  }
}

export const usageOnWire = ({ usage }: Answer) =>
  usage && {
    prompt_tokens: usage.prompt,
    completion_tokens: usage.completion,
    total_tokens: usage.prompt + usage.completion,
    prompt_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning }
  }

/** Errors as hosts of the convention say them: status, body, headers. */
export const errors = {
  limit: { status: 429, error: { message: "Slow down", type: "tokens", code: "rate_limit_exceeded" } },
  funds: { status: 429, error: { message: "Quota", type: "insufficient_quota", code: "insufficient_quota" } },
  key: { status: 401, error: { message: "Bad key", type: "invalid_request_error", code: "invalid_api_key" } },
  request: {
    status: 400,
    error: { message: "Too long", type: "invalid_request_error", code: "context_length_exceeded" }
  },
  image: { status: 400, error: { message: "Bad image", type: "invalid_request_error", code: "invalid_image_format" } },
  moderation: {
    status: 400,
    error: { message: "No", type: "invalid_request_error", code: "content_policy_violation" }
  },
  server: { status: 503, error: { message: "Overloaded", type: "server_error", code: "overloaded" } },
  missing: { status: 404, error: { message: "No such model", type: "invalid_request_error", code: "model_not_found" } }
} as const

const isError = (weather: Weather): weather is keyof typeof errors => weather in errors

const chunk = (delta: unknown, finish: string | null = null) =>
  Fake.event({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })

/** A whole answer, and its stream in pieces: opening, output, end. */
export const wire = (answer: Answer) => {
  const calls = answer.toolCalls?.map(({ arguments: given, id, name }) => {
    return { id, type: "function", function: { name, arguments: given } }
  })
  const message = {
    role: "assistant",
    content: answer.content ?? null,
    ...(answer.reasoning === undefined ? undefined : { reasoning_content: answer.reasoning }),
    ...(calls === undefined ? undefined : { tool_calls: calls })
  }
  const usage = usageOnWire(answer)
  const pieces = (whole: string | undefined) => (whole === undefined ? [] : [whole.slice(0, 5), whole.slice(5)])
  return {
    body: { id: "x", object: "chat.completion", choices: [{ index: 0, message, finish_reason: answer.finish }], usage },
    opening: chunk({ role: "assistant", content: "" }),
    output: [
      ...pieces(answer.reasoning).map((piece) => chunk({ reasoning_content: piece })),
      ...pieces(answer.content).map((piece) => chunk({ content: piece })),
      ...(calls ?? []).flatMap(({ function: { arguments: given, name }, id }, index) => [
        chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
        ...pieces(given).map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] }))
      ])
    ],
    end: [chunk({}, answer.finish), ...(usage === undefined ? [] : [Fake.event({ choices: [], usage })]), Fake.done]
  }
}

const wantsStream = (received: Fake.Received) => record(received.body).stream === true

const badWeather = (weather: Exclude<Weather, keyof typeof errors>): Fake.Reply => {
  const { body, opening, output } = wire({ content: "never whole", finish: "stop" })
  switch (weather) {
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "error inside":
      return Fake.json(200, { error: { message: "boom", type: "server_error" } })
    case "garbage":
      return (response, received) =>
        wantsStream(received)
          ? Fake.sse('data: {"choices":[{"del\n\n', Fake.done)(response, received)
          : Fake.text(200, "application/json", '{"choices":[{"mess')(response, received)
    case "cut answer":
      return Fake.steps({ type: "application/json" }, JSON.stringify(body).slice(0, 40), Fake.cut)
    default:
      return Fake.sse(opening, ...output, Fake.cut)
  }
}

export const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const fake = yield* Fake.make
  return {
    route: routeTo(`${fake.url}/v1`),
    understood: Effect.map(fake.received, ({ body }) => understood(body)),
    answers: (answer) => {
      const { body, end, opening, output } = wire(answer)
      return fake.script((response, received) =>
        wantsStream(received)
          ? Fake.sse(opening, ...output, ...end)(response, received)
          : Fake.json(200, body)(response, received)
      )
    },
    meets: (weather) => {
      if (!isError(weather)) return fake.script(badWeather(weather))
      const { error, status } = errors[weather]
      return fake.script(Fake.json(status, { error }, weather === "limit" ? { "retry-after": "7" } : {}))
    },
    holds: (answer) =>
      Effect.gen(function* () {
        const { body, end, opening, output } = wire(answer)
        const gate = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        const [first = "", ...rest] = output
        yield* fake.script((response, received) => {
          response.on("close", () => Deferred.unsafeDone(gone, received.closed))
          return wantsStream(received)
            ? Fake.sse(opening, first, Deferred.await(gate), ...rest, ...end)(response, received)
            : Fake.steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(body))(response, received)
        })
        return { release: Effect.asVoid(Deferred.succeed(gate, undefined)), gone: Deferred.await(gone) }
      })
  }
})

/** The same in the words of an independent fake, which cannot wait and knows no pages or errors inside answers. */
export const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const mock = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const started = new LLMock({ port: 0, auth: { apiKeys: [secret] } })
      await started.start()
      return started
    }),
    (started) => Effect.promise(() => started.stop())
  )
  let looked = 0
  const nothing = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    Effect.sync(() => mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture }))
  const route = routeTo(`${mock.url}/v1`)
  return {
    route,
    understood: Effect.sync(() => understood(mock.getRequests()[looked++]?.body)),
    answers: (answer) => {
      const { content, reasoning, toolCalls } = answer
      const said = {
        usage: usageOnWire(answer) ?? nothing,
        finishReason: answer.finish,
        ...(reasoning && { reasoning })
      }
      return next({
        response: toolCalls ? { ...said, toolCalls: [...toolCalls] } : { ...said, content: content ?? "" },
        chunkSize: 4
      })
    },
    meets: (weather) => {
      if (isError(weather)) {
        const { error, status } = errors[weather]
        return next({ response: { error, status, retryAfter: 7 } })
      }
      return weather === "garbage"
        ? next({ response: { content: "unseen" }, chaos: { malformedRate: 1 } })
        : next({
            response: { content: "never whole, whatever comes" },
            chunkSize: 4,
            latency: 20,
            truncateAfterChunks: 4
          })
    }
  }
})

const layer = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })
const has = { reasoning: true, schema: true, stop: true, cached: true }

export const harnesses: ReadonlyArray<Harness> = [
  {
    name: "openai-chat on our own fake",
    make: OpenAiChat.make,
    upstream: layer,
    host: ownHost,
    holds: true,
    withholds: true,
    weathers: [...answered, "page", "garbage", "empty", "error inside", "cut answer", "cut stream"],
    has
  },
  {
    name: "openai-chat on aimock",
    make: OpenAiChat.make,
    upstream: layer,
    host: aimockHost,
    holds: false,
    withholds: true,
    weathers: [...answered, "garbage", "cut stream"],
    has: { ...has, cached: false }
  }
]
