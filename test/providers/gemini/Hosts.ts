import { LLMock } from "@copilotkit/aimock"
import { Deferred, Effect, type Scope } from "effect"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as Gemini from "../../../src/providers/gemini/Gemini.ts"
import type { Answer, Harness, Host, Weather } from "../../contracts/ChatHarness.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import * as Tap from "../../harness/upstream/RecordingProxy.ts"
import { errors, finishOnWire, routeTo, secret, understood, usageOnWire } from "./Wire.ts"

export type Chunk = Readonly<Record<string, unknown>>

/** A piece of an answer, or all of it. */
export const chunk = (parts: ReadonlyArray<unknown>, finishReason?: string, usageMetadata?: unknown): Chunk => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...(finishReason && { finishReason }) }],
  ...(usageMetadata === undefined ? undefined : { usageMetadata }),
  modelVersion: "gemini-3-test",
  responseId: "r-1"
})

const halves = (whole: string | undefined) => (whole === undefined ? [] : [whole.slice(0, 5), whole.slice(5)])

/** A whole answer, and its stream in pieces. Calls come whole, each in a chunk of its own. */
export const wire = (answer: Answer) => {
  const usage = usageOnWire(answer)
  const finish = finishOnWire[answer.finish]
  const calls = (answer.toolCalls ?? []).map(({ arguments: given, id, name }) => {
    return { functionCall: { id, name, args: JSON.parse(given) } }
  })
  const thoughts = (text: string) => ({ text, thought: true })
  const texts = (text: string) => ({ text })
  const whole = [
    ...(answer.reasoning === undefined ? [] : [thoughts(answer.reasoning)]),
    ...(answer.content === undefined ? [] : [texts(answer.content)]),
    ...calls
  ]
  const pieces = [...halves(answer.reasoning).map(thoughts), ...halves(answer.content).map(texts), ...calls]
  return {
    body: chunk(whole, finish, usage),
    output: pieces.map((part) => Fake.event(chunk([part]))),
    end: [Fake.event(chunk([{ text: "" }], finish, usage))]
  }
}

const wantsStream = ({ path }: Fake.Received) => path.includes(":streamGenerateContent")

const answered = (body: Chunk): Fake.Reply => {
  const sse = Fake.sse(Fake.event(body))
  const json = Fake.json(200, body)
  return (response, received) => (wantsStream(received) ? sse : json)(response, received)
}

const isError = (weather: Weather): weather is keyof typeof errors => weather in errors

const badWeather = (weather: Exclude<Weather, keyof typeof errors>): Fake.Reply => {
  const { body, output } = wire({ content: "never whole", finish: "stop" })
  switch (weather) {
    case "moderation":
      return answered({ promptFeedback: { blockReason: "PROHIBITED_CONTENT" }, usageMetadata: { promptTokenCount: 9 } })
    case "page":
      return Fake.text(502, "text/html", "<html><body>Bad gateway</body></html>")
    case "empty":
      return Fake.text(200, "application/json", "")
    case "error inside":
      return answered({ error: { code: 500, status: "INTERNAL", message: "boom" } })
    case "garbage":
      return (response, received) =>
        wantsStream(received)
          ? Fake.sse('data: {"candidates":[{"con\n\n')(response, received)
          : Fake.text(200, "application/json", '{"candidates":[{"con')(response, received)
    case "cut answer":
      return Fake.steps({ type: "application/json" }, JSON.stringify(body).slice(0, 40), Fake.cut)
    default:
      return Fake.sse(...output, Fake.cut)
  }
}

export const ownHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const fake = yield* Fake.make
  return {
    route: routeTo(fake.url),
    understood: Effect.map(fake.received, ({ body, path }) => understood(path, body)),
    answers: (answer) => {
      const { body, end, output } = wire(answer)
      return fake.script((response, received) =>
        wantsStream(received)
          ? Fake.sse(...output, ...end)(response, received)
          : Fake.json(200, body)(response, received)
      )
    },
    meets: (weather) => {
      if (!isError(weather)) return fake.script(badWeather(weather))
      return fake.script(Fake.json(errors[weather].code, { error: errors[weather] }))
    },
    holds: (answer) =>
      Effect.gen(function* () {
        const { body, end, output } = wire(answer)
        const gate = yield* Deferred.make<void>()
        const gone = yield* Deferred.make<void>()
        const [first = "", ...rest] = output
        yield* fake.script((response, received) => {
          response.on("close", () => Deferred.unsafeDone(gone, received.closed))
          return wantsStream(received)
            ? Fake.sse(first, Deferred.await(gate), ...rest, ...end)(response, received)
            : Fake.steps({ type: "application/json" }, Deferred.await(gate), JSON.stringify(body))(response, received)
        })
        return { release: Effect.asVoid(Deferred.succeed(gate, undefined)), gone: Deferred.await(gone) }
      })
  }
})

/** An independent fake behind a tap: it keeps no schema, tool choice or picture of a request. */
export const aimockHost: Effect.Effect<Host, never, Scope.Scope> = Effect.gen(function* () {
  const mock = yield* Effect.acquireRelease(
    Effect.promise(() => LLMock.create({ port: 0, auth: { apiKeys: [secret] } })),
    (started) => Effect.promise(() => started.stop())
  )
  const tap = yield* Tap.to(mock.url)
  const next = (fixture: Omit<Parameters<typeof mock.addFixture>[0], "match">) =>
    Effect.sync(() => mock.clearFixtures().addFixture({ match: { predicate: () => true }, ...fixture }))
  return {
    route: routeTo(tap.url),
    understood: Effect.map(tap.received, ({ body, path }) => understood(path, body)),
    answers: (answer) => {
      const { content, reasoning, toolCalls } = answer
      const usage = usageOnWire(answer)
      const said = {
        ...(usage && { usage: { promptTokenCount: usage.promptTokenCount, candidatesTokenCount: 13 } }),
        // Without a word it ends calls with a finishReason of its own, which is none of the host's.
        ...(toolCalls === undefined && { finishReason: finishOnWire[answer.finish] }),
        ...(reasoning && { reasoning })
      }
      return next({
        response: toolCalls ? { ...said, toolCalls: [...toolCalls] } : { ...said, content: content ?? "" },
        chunkSize: 4
      })
    },
    meets: (weather) => {
      if (weather === "moderation") return next({ response: { content: "", finishReason: "SAFETY" } })
      if (weather === "key") {
        return next({ response: { error: { message: "Denied", type: "PERMISSION_DENIED" }, status: 403 } })
      }
      if (isError(weather)) {
        const { code, message, status } = errors[weather]
        return next({ response: { error: { message, type: status }, status: code, retryAfter: 7 } })
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

export const layer = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 })
const has = { reasoning: true, schema: true, stop: true, cached: true }
const common: ReadonlyArray<Weather> = [
  "limit",
  "funds",
  "key",
  "request",
  "image",
  "moderation",
  "server",
  "missing",
  "garbage",
  "cut stream"
]

export const harnesses: ReadonlyArray<Harness> = [
  {
    name: "gemini on our own fake",
    make: Gemini.make,
    upstream: layer,
    host: ownHost,
    holds: true,
    weathers: [...common, "page", "empty", "error inside", "cut answer"],
    has
  },
  {
    name: "gemini on aimock",
    make: Gemini.make,
    upstream: layer,
    host: aimockHost,
    holds: false,
    weathers: common,
    has: { ...has, cached: false }
  }
]
