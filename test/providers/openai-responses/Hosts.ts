import { LLMock } from "@copilotkit/aimock"
import { Deferred, Effect, Predicate, type Scope } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as OpenAiResponses from "../../../src/providers/openai-responses/OpenAiResponses.ts"
import {
  answered,
  type Harness,
  type Host,
  type Turn,
  type Understood,
  type Weather
} from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { relay } from "../../harness/upstream/Relay.ts"
import * as OpenAiChatHosts from "../openai-chat/Hosts.ts"
import { failedWith, streamed, whole, written } from "./wire.ts"

const { errors, secret, usageOnWire } = OpenAiChatHosts

export { secret }

export const routeTo = (baseUrl: string, options: Route["options"] = {}): Route => {
  const route = OpenAiChatHosts.routeTo(baseUrl, options)
  return { ...route, provider: { ...route.provider, adapter: "openai-responses" } }
}

const record = (value: unknown): Record<PropertyKey, unknown> => (Predicate.isRecord(value) ? value : {})
const list = (value: unknown): ReadonlyArray<Record<PropertyKey, unknown>> =>
  Array.isArray(value) ? value.map(record) : []
const string = (value: unknown): string => (typeof value === "string" ? value : "")
const text = (content: unknown): string =>
  typeof content === "string"
    ? content
    : list(content)
        .map((part) => string(part.text))
        .join("")

/** Calls that follow each other, or a message, are one turn. */
const turnsOf = (items: ReadonlyArray<Record<PropertyKey, unknown>>): ReadonlyArray<Turn> => {
  const turns: Array<Turn> = []
  const nothing = { text: "", images: [], calls: [], answers: undefined }
  for (const item of items) {
    if (item.type === "function_call") {
      const call = { id: string(item.call_id), name: string(item.name), arguments: JSON.parse(string(item.arguments)) }
      const last = turns.at(-1)?.role === "assistant" ? turns.pop() : undefined
      turns.push({ ...nothing, role: "assistant", ...last, calls: [...(last?.calls ?? []), call] })
    } else if (item.type === "function_call_output") {
      turns.push({ ...nothing, role: "tool", text: text(item.output), answers: string(item.call_id) })
    } else {
      const images = list(item.content).flatMap(({ image_url }) => (typeof image_url === "string" ? [image_url] : []))
      turns.push({
        ...nothing,
        role: item.role === "assistant" ? "assistant" : "user",
        text: text(item.content),
        images
      })
    }
  }
  return turns
}

const understood = (given: unknown): Understood => {
  const body = record(given)
  const input = list(body.input)
  const choice = body.tool_choice
  return {
    model: string(body.model),
    stream: body.stream === true,
    system: input
      .filter(({ role }) => role === "developer")
      .map(({ content }) => text(content))
      .join(""),
    turns: turnsOf(input.filter(({ role }) => role !== "developer")),
    maxTokens: typeof body.max_output_tokens === "number" ? body.max_output_tokens : undefined,
    stop: list(body.stop).map(string),
    tools: list(body.tools).map(({ name, parameters }) => ({ name: string(name), parameters })),
    toolChoice:
      choice === "auto" || choice === "none" || choice === "required"
        ? choice
        : choice === undefined
          ? undefined
          : { name: string(record(choice).name) },
    schema: record(record(body.text).format).schema
  }
}

const isError = (weather: Weather): weather is keyof typeof errors => weather in errors
const wantsStream = (received: Fake.Received) => record(received.body).stream === true

/** One reply for a call in one piece, another for a stream. */
const either =
  (piece: Fake.Reply, stream: Fake.Reply): Fake.Reply =>
  (response, received) =>
    (wantsStream(received) ? stream : piece)(response, received)

const badWeather = (weather: Exclude<Weather, keyof typeof errors>): Fake.Reply => {
  const answer = whole({ content: "never whole", finish: "stop" })
  const { opening, output } = streamed(answer)
  const failed = failedWith("server_error")
  switch (weather) {
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "error inside":
      return either(Fake.json(200, failed), Fake.sse(...written([{ type: "response.failed", response: failed }])))
    case "garbage":
      return either(
        Fake.text(200, "application/json", '{"output":[{"mess'),
        Fake.sse('event: response.created\ndata: {"type":"resp\n\n')
      )
    case "cut answer":
      return Fake.steps({ type: "application/json" }, JSON.stringify(answer).slice(0, 40), Fake.cut)
    default:
      return Fake.sse(...written([...opening, ...output]), Fake.cut)
  }
}

const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const fake = yield* Fake.make
  return {
    route: routeTo(`${fake.url}/v1`),
    understood: Effect.map(fake.received, ({ body }) => understood(body)),
    answers: (answer) => {
      const all = streamed(whole(answer))
      return fake.script(
        either(Fake.json(200, whole(answer)), Fake.sse(...written([...all.opening, ...all.output, ...all.end])))
      )
    },
    meets: (weather) => {
      if (!isError(weather)) return fake.script(badWeather(weather))
      const { error, status } = errors[weather]
      return fake.script(Fake.json(status, { error }, weather === "limit" ? { "retry-after": "7" } : {}))
    },
    holds: (answer) =>
      Effect.gen(function* () {
        const { end, opening, output } = streamed(whole(answer))
        const gate = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        const first = output.findIndex(({ type }) => type === "response.output_text.delta") + 1
        const all = written([...opening, ...output, ...end])
        const [before, after] = [all.slice(0, opening.length + first), all.slice(opening.length + first)]
        const open = Deferred.await(gate)
        yield* fake.script((response, received) => {
          response.on("close", () => Deferred.unsafeDone(gone, received.closed))
          return either(
            Fake.steps({ type: "application/json" }, open, JSON.stringify(whole(answer))),
            Fake.sse(...before, open, ...after)
          )(response, received)
        })
        return { release: Effect.asVoid(Deferred.succeed(gate, undefined)), gone: Deferred.await(gone) }
      })
  }
})

/** The same in the words of an independent fake, behind a door that keeps what was sent: the fake itself translates it. */
const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const mock = yield* Effect.acquireRelease(
    Effect.promise(async () => {
      const started = new LLMock({ port: 0, auth: { apiKeys: [secret] } })
      await started.start()
      return started
    }),
    (started) => Effect.promise(() => started.stop())
  )
  const door = yield* Fake.serving(relay(mock.url))
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    Effect.sync(() => mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture }))
  return {
    route: { ...routeTo(`${door.url}/v1`), model: "gpt-5-fake" },
    understood: Effect.map(door.received, ({ body }) => understood(body)),
    answers: (answer) => {
      const { content, reasoning, toolCalls } = answer
      const usage = usageOnWire(answer)
      const said = { finishReason: answer.finish, ...(usage && { usage }), ...(reasoning && { reasoning }) }
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
        : next({ response: { content: "never whole" }, chunkSize: 4, latency: 20, truncateAfterChunks: 6 })
    }
  }
})

const layer = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })
const has = { reasoning: true, schema: true, stop: false, cached: true }

export const harnesses: ReadonlyArray<Harness> = [
  {
    name: "openai-responses on our own fake",
    make: OpenAiResponses.make,
    upstream: layer,
    host: ownHost,
    holds: true,
    weathers: [...answered, "page", "garbage", "empty", "error inside", "cut answer", "cut stream"],
    withholds: true,
    has
  },
  {
    name: "openai-responses on aimock",
    make: OpenAiResponses.make,
    upstream: layer,
    host: aimockHost,
    holds: false,
    weathers: [...answered, "garbage", "cut stream"],
    has: { ...has, cached: false }
  }
]
