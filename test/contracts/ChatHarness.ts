import { Effect, type Layer, Option, type Scope } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, FinishReason, Tool, ToolCall, Usage } from "../../src/domain/Chat.ts"
import type { Feature, Route } from "../../src/domain/Model.ts"
import type { Upstream } from "../../src/providers/client/Upstream.ts"
import type { ChatAdapter, Provider, ProviderFailure } from "../../src/services/routing/Provider.ts"
import { assert, type Body } from "../harness/It.ts"
import type { HeldCall } from "../harness/upstream/FakeUpstream.ts"

/** What the model says, in the gateway's words; the host puts it on its wire. */
export interface Answer {
  readonly content?: string | undefined
  readonly reasoning?: string | undefined
  readonly toolCalls?: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
  readonly finish: FinishReason
  readonly usage?: Usage | undefined
}

/** Those that a host tells by a status and an error. */
export const refusals = ["limit", "funds", "key", "request", "image", "moderation", "server", "missing"] as const
export type Refusal = (typeof refusals)[number]
export type Fault = Refusal | "page" | "garbage" | "empty" | "error inside" | "deep error" | "cut answer" | "cut stream"
export const faults: ReadonlyArray<Fault> = [
  ...refusals,
  "page",
  "garbage",
  "empty",
  "error inside",
  "deep error",
  "cut answer",
  "cut stream"
]

export interface Turn {
  readonly role: "user" | "assistant" | "tool"
  readonly text: string
  readonly images: ReadonlyArray<string>
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: unknown }>
  /** The call that a tool's turn answers. */
  readonly answers: string | undefined
}

export const turn = (role: Turn["role"], text: string, more: Partial<Turn> = {}): Turn => {
  return { role, text, images: [], calls: [], answers: undefined, ...more }
}

/** A request as the host understood it, whatever its wire. */
export interface Understood {
  readonly model: string
  readonly stream: boolean
  readonly system: string
  readonly turns: ReadonlyArray<Turn>
  readonly maxTokens: number | undefined
  readonly stop: ReadonlyArray<string>
  readonly tools: ReadonlyArray<{ readonly name: string; readonly parameters: unknown }>
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string } | undefined
  /** False: one call at most. */
  readonly parallel?: boolean | undefined
  /** Whether the answer is to be JSON, by a schema or of any shape. */
  readonly json?: boolean | undefined
  readonly schema: unknown
  readonly temperature?: unknown
  readonly topP?: unknown
  /** Whether the request says how much to reason. */
  readonly reasons?: boolean | undefined
  readonly searches?: boolean | undefined
}

export interface Host {
  readonly route: Route
  /** Scripts the next call, JSON or stream. */
  readonly answer: (answer: Answer) => Effect.Effect<void>
  readonly fail: (fault: Fault) => Effect.Effect<void>
  /** The next request not yet looked at. */
  readonly received: Effect.Effect<Understood>
  /** Where the host can wait: a call held open after its first piece in a stream, before anything otherwise. */
  readonly hold?: ((answer: Answer) => Effect.Effect<HeldCall>) | undefined
}

/** What exists on a wire. */
export interface WireFeatures {
  /** What the adapter declares for the wire's options, and what its host is sent. */
  readonly features: ReadonlyArray<Feature>
  readonly stop: boolean
  /** Counts of tokens that were read from the cache, and of those that were written to it. */
  readonly cached: boolean
  readonly cacheWrites: boolean
  /** Whether the host can say that it withheld an answer. */
  readonly withholding: boolean
  /** False: a function is forced by offering no other one. */
  readonly namedChoice?: false
  /** False: of several calls the first is kept. */
  readonly singleCall?: false
}

export interface Harness {
  readonly name: string
  readonly make: Effect.Effect<Provider, never, Upstream>
  readonly upstream: Layer.Layer<Upstream>
  readonly host: Effect.Effect<Host, never, Scope.Scope>
  /** What the host can be made to do. */
  readonly faults: ReadonlyArray<Fault>
  readonly has: WireFeatures
  /** Whether the host can wait. */
  readonly holds: boolean
  /** Of stop sequences those that reach the host; all of them where it is left out. */
  readonly sentStops?: ((stops: ReadonlyArray<string>) => ReadonlyArray<string>) | undefined
}

export const request = (given: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "ours",
  messages: [{ role: "user", content: "Say something." }],
  stream: false,
  includeUsage: false,
  maxTokens: 4096,
  stop: [],
  tools: [],
  webSearch: false,
  ...given
})

export const weatherTool: Tool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Current weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
  }
}

export const called = (id: string, name: string, given: string): ToolCall => {
  return { id, type: "function", function: { name, arguments: given } }
}

export const chatOf = ({ chat }: Provider): Effect.Effect<ChatAdapter> =>
  chat === undefined ? Effect.dieMessage("the provider has no chat") : Effect.succeed(chat)

/** Everything a stream said until it ended, and how it ended. */
export interface Heard {
  readonly events: ReadonlyArray<ChatEvent>
  readonly failure: ProviderFailure | undefined
}

export const hear = (adapter: ChatAdapter, route: Route, asked: ChatRequest): Effect.Effect<Heard> => {
  const events: Array<ChatEvent> = []
  const heard = (failure: ProviderFailure | undefined): Heard => ({ events, failure })
  return Effect.gen(function* () {
    const pull = yield* adapter.stream(route, { ...asked, stream: true })
    const collect = (batch: ReadonlyArray<ChatEvent>) => events.push(...batch.filter(({ type }) => type !== "begin"))
    const end = yield* Effect.flip(Effect.forever(Effect.map(pull, collect)))
    return heard(Option.getOrUndefined(end))
  }).pipe(
    Effect.catchAll((failure) => Effect.succeed(heard(failure))),
    Effect.scoped
  )
}

/** The answer that a stream's events add up to. */
export const joined = (events: ReadonlyArray<ChatEvent>): ChatAnswer => {
  const text = (type: "content" | "reasoning") =>
    events.map((event) => (event.type === type ? event.text : "")).join("")
  const calls: Array<ToolCall> = []
  for (const event of events) {
    if (event.type !== "tool_call") continue
    const known = calls[event.index]
    if (known === undefined) {
      assert.strictEqual(event.index, calls.length, "tool calls are counted from 0, in order")
      assert.isTrue(event.id !== undefined && event.name !== undefined, "a tool call opens with id and name")
    }
    const { arguments: before, name } = known?.function ?? { name: event.name ?? "", arguments: "" }
    calls[event.index] = called(known?.id ?? event.id ?? "", name, before + event.arguments)
  }
  const finishes = events.filter((event) => event.type === "finish")
  assert.strictEqual(finishes.length, 1, "a whole stream finishes once")
  const usage = events.findLast((event) => event.type === "usage")
  const citations = events.flatMap((event) => (event.type === "citation" ? [event.citation] : []))
  const unread = events.flatMap((event) => (event.type === "unread" ? [event.unread] : []))
  const { reason: finish = "stop", type: _type, ...details } = finishes[0] ?? {}
  return {
    content: text("content") === "" && calls.length > 0 ? null : text("content"),
    reasoning: text("reasoning") || undefined,
    toolCalls: calls,
    finish,
    ...details,
    ...(citations.length > 0 && { citations }),
    ...(unread.length > 0 && { unread }),
    usage: usage?.usage
  }
}

/** A test of an adapter against a host of its own. */
export type Check = (name: string, body: Body<[adapter: ChatAdapter, host: Host], Scope.Scope>) => void

/** The same answer asked for in one piece and as a stream: both must come out as `expected`. */
export const comesOut = Effect.fnUntraced(function* (
  adapter: ChatAdapter,
  host: Host,
  asked: ChatRequest,
  answer: Answer,
  expected: Partial<ChatAnswer>
) {
  yield* host.answer(answer)
  const whole = yield* adapter.complete(host.route, asked)
  yield* host.answer(answer)
  const { events, failure } = yield* hear(adapter, host.route, asked)
  assert.isUndefined(failure)
  assert.deepStrictEqual({ ...whole, ...expected }, whole)
  assert.deepStrictEqual(joined(events), whole)
  assert.include(["finish", "usage"], events.at(-1)?.type)
  const first = yield* host.received
  const second = yield* host.received
  assert.deepStrictEqual([first.stream, second.stream], [false, true])
  assert.deepStrictEqual({ ...second, stream: false }, first)
  assert.strictEqual(first.model, host.route.model)
  return first
})
