import { Deferred, Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, ToolCall } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { everything } from "../../services/catalog/AdapterFeatures.ts"
import { cutTo } from "../../services/chat/ChatUsage.ts"
import { TokenCounter } from "../../services/chat/TokenCounter.ts"
import type { ChatAdapter, ChatPull, Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { cancelled, cutFailure, type Faults, inject, readFaults, tooLong } from "./Faults.ts"
import { image, video } from "./Media.ts"
import { scriptFor, textsOf } from "./Script.ts"

const imageTokens = 85
const deltasPerPull = 4

const untilStop = (text: string, stop: ReadonlyArray<string>): string => {
  const found = stop.filter((sequence) => sequence !== "" && text.includes(sequence))
  return text.slice(0, Math.min(text.length, ...found.map((sequence) => text.indexOf(sequence))))
}

const wordsIn = (text: string): ReadonlyArray<string> => text.match(/\s*\S{1,20}|\s+/gu) ?? []

const deltasOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => [
  ...wordsIn(answer.reasoning ?? "").map((text): ChatEvent => ({ type: "reasoning", text })),
  ...wordsIn(answer.content ?? "").map((text): ChatEvent => ({ type: "content", text })),
  ...answer.toolCalls.flatMap(
    ({ function: { arguments: input, name }, id }, index): ReadonlyArray<ChatEvent> => [
      { type: "tool_call", index, id, name, arguments: "" },
      ...wordsIn(input).map((text): ChatEvent => ({ type: "tool_call", index, arguments: text }))
    ]
  )
]

type Closed = Effect.Effect<never, Option.Option<ProviderFailure>>

/** Else a pull that waits out a gap would outlive its stream. */
const untilClosed = Effect.acquireRelease(Deferred.make<never, Option.Option<ProviderFailure>>(), (closed) =>
  Deferred.fail(closed, Option.some(cancelled))
).pipe(Effect.map((closed): Closed => Deferred.await(closed)))

const pullOf = (answer: ChatAnswer, { cut, gap = 0 }: Faults, closed: Closed): ChatPull => {
  const deltas = deltasOf(answer)
  const isCut = cut !== undefined && cut <= deltas.length
  const finish: ChatEvent = { type: "finish", reason: answer.finish }
  const usage: ReadonlyArray<ChatEvent> = answer.usage === undefined ? [] : [{ type: "usage", usage: answer.usage }]
  const events = isCut ? deltas.slice(0, cut) : [...deltas, finish, ...usage]
  const size = gap > 0 ? 1 : deltasPerPull
  let at = 0
  const next = Effect.suspend(() => {
    if (at >= events.length) return Effect.fail(isCut ? Option.some(cutFailure(cut)) : Option.none())
    const upTo = at < deltas.length ? Math.min(at + size, deltas.length) : events.length
    const found = events.slice(at, upTo)
    at = upTo
    return Effect.succeed(found)
  })
  const later = Effect.zipRight(Effect.raceFirst(Effect.sleep(gap), closed), next)
  return Effect.suspend(() => (gap > 0 && at > 0 && at < deltas.length ? later : next))
}

function* textsIn({ messages }: ChatRequest): Generator<string> {
  for (const message of messages) yield* textsOf(message)
}

const makeChat = (tokens: typeof TokenCounter.Service): ChatAdapter => {
  const answerTo = Effect.fnUntraced(function* (request: ChatRequest, prompt: number): Effect.fn.Return<ChatAnswer> {
    const script = scriptFor(request)
    let [room, isWhole] = [request.maxTokens, true]
    const writeText = Effect.fnUntraced(function* (text: string) {
      const piece = yield* cutTo(tokens.count, isWhole ? text : "", room)
      room -= piece.tokens
      isWhole &&= piece.whole
      return piece.text
    })
    const reasoning = script.reasoning === undefined ? undefined : yield* writeText(script.reasoning)
    const reasoned = request.maxTokens - room
    const content = script.content === undefined ? null : yield* writeText(untilStop(script.content, request.stop))
    const toolCalls: Array<ToolCall> = []
    for (const call of script.toolCalls) {
      const { arguments: input, name } = call.function
      const nameTokens = yield* tokens.count(name)
      isWhole &&= nameTokens <= room
      if (!isWhole) break
      room -= nameTokens
      toolCalls.push({ ...call, function: { name, arguments: yield* writeText(input) } })
    }
    const finish = toolCalls.length > 0 ? "tool_calls" : "stop"
    const completion = request.maxTokens - room
    const usage = { prompt, completion, cached: 0, cacheWrite: 0, reasoning: reasoned }
    return { reasoning, content, toolCalls, finish: isWhole ? finish : "length", usage }
  })

  const begin = Effect.fnUntraced(function* (route: Route, request: ChatRequest) {
    const faults = yield* EventLoop.run(readFaults(route, textsIn(request)), request.isLarge)
    yield* inject(faults)
    const prompt = yield* tokens.prompt(request, imageTokens)
    if (prompt > (request.contextLength ?? Infinity)) return yield* tooLong(prompt, request)
    return { faults, answer: yield* answerTo(request, prompt) }
  })

  return {
    features: everything,
    complete: Effect.fn("Sandbox.complete")(function* (route: Route, request: ChatRequest) {
      const { answer, faults } = yield* begin(route, request)
      if (faults.cut !== undefined && faults.cut <= deltasOf(answer).length) return yield* cutFailure(faults.cut)
      return answer
    }),
    stream: Effect.fn("Sandbox.stream")(function* (route: Route, request: ChatRequest) {
      const { answer, faults } = yield* begin(route, request)
      return yield* Effect.map(untilClosed, (closed) => pullOf(answer, faults, closed))
    })
  }
}

/** Its answers depend on nothing but the request; what they are, and how they fail, is in docs/getting-started.md. */
export const make: Effect.Effect<Provider, never, TokenCounter> = Effect.map(TokenCounter, (tokens) => ({
  adapter: "sandbox",
  chat: makeChat(tokens),
  image,
  video
}))
