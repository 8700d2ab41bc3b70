import { Deferred, Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest, ToolCall } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { allFeatures } from "../../services/catalog/EntryFields.ts"
import { truncateText } from "../../services/chat/ChatUsage.ts"
import { TokenCounter } from "../../services/chat/TokenCounter.ts"
import type { ChatAdapter, ChatPull, Provider, ProviderFailure } from "../../services/routing/Provider.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { cancelledFailure, contextLengthFailure, cutFailure, type Faults, inject, readFaults } from "./Faults.ts"
import { scriptFor, textsOf } from "./SandboxChat.ts"
import { image, video } from "./SandboxMedia.ts"

const imageTokens = 85
const deltasPerPull = 4

const truncateAtStop = (text: string, stop: ReadonlyArray<string>): string => {
  const matches = stop.filter((sequence) => sequence !== "" && text.includes(sequence))
  return text.slice(0, Math.min(text.length, ...matches.map((sequence) => text.indexOf(sequence))))
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

type StreamEnd = Effect.Effect<never, Option.Option<ProviderFailure>>

/** Returns an effect that fails when the stream is closed. It interrupts a pull that waits for a gap. */
const awaitStreamEnd = Effect.acquireRelease(Deferred.make<never, Option.Option<ProviderFailure>>(), (closed) =>
  Deferred.fail(closed, Option.some(cancelledFailure))
).pipe(Effect.map((closed): StreamEnd => Deferred.await(closed)))

const pullOf = (answer: ChatAnswer, { cut, gap = 0 }: Faults, closed: StreamEnd): ChatPull => {
  const deltas = deltasOf(answer)
  const isCut = cut !== undefined && cut <= deltas.length
  const finish: ChatEvent = { type: "finish", reason: answer.finish }
  const usage: ReadonlyArray<ChatEvent> = answer.usage === undefined ? [] : [{ type: "usage", usage: answer.usage }]
  const events = isCut ? deltas.slice(0, cut) : [...deltas, finish, ...usage]
  const size = gap > 0 ? 1 : deltasPerPull
  let at = 0
  const next = Effect.suspend(() => {
    if (at >= events.length) return Effect.fail(isCut ? Option.some(cutFailure(cut)) : Option.none())
    const end = at < deltas.length ? Math.min(at + size, deltas.length) : events.length
    const batch = events.slice(at, end)
    at = end
    return Effect.succeed(batch)
  })
  const nextAfterGap = Effect.zipRight(Effect.raceFirst(Effect.sleep(gap), closed), next)
  return Effect.suspend(() => (gap > 0 && at > 0 && at < deltas.length ? nextAfterGap : next))
}

function* textsIn({ messages }: ChatRequest): Generator<string> {
  for (const message of messages) yield* textsOf(message)
}

const makeChat = (tokens: typeof TokenCounter.Service): ChatAdapter => {
  const answerTo = Effect.fnUntraced(function* (request: ChatRequest, prompt: number): Effect.fn.Return<ChatAnswer> {
    const script = scriptFor(request)
    let [tokensLeft, isComplete] = [request.maxTokens, true]
    const writeText = Effect.fnUntraced(function* (text: string) {
      const piece = yield* truncateText(tokens.count, isComplete ? text : "", tokensLeft)
      tokensLeft -= piece.tokens
      isComplete &&= piece.isComplete
      return piece.text
    })
    const reasoning = script.reasoning === undefined ? undefined : yield* writeText(script.reasoning)
    const reasoningTokens = request.maxTokens - tokensLeft
    const content = script.content === undefined ? null : yield* writeText(truncateAtStop(script.content, request.stop))
    const toolCalls: Array<ToolCall> = []
    for (const call of script.toolCalls) {
      const { arguments: input, name } = call.function
      const nameTokens = yield* tokens.count(name)
      isComplete &&= nameTokens <= tokensLeft
      if (!isComplete) break
      tokensLeft -= nameTokens
      toolCalls.push({ ...call, function: { name, arguments: yield* writeText(input) } })
    }
    const finish = toolCalls.length > 0 ? "tool_calls" : "stop"
    const completion = request.maxTokens - tokensLeft
    const usage = { prompt, completion, cached: 0, cacheWrite: 0, reasoning: reasoningTokens }
    return { reasoning, content, toolCalls, finish: isComplete ? finish : "length", usage }
  })

  const prepare = Effect.fnUntraced(function* (route: Route, request: ChatRequest) {
    const faults = yield* EventLoop.run(readFaults(route, textsIn(request)), request.isLarge)
    yield* inject(faults)
    const prompt = yield* tokens.prompt(request, imageTokens)
    if (prompt > (request.contextLength ?? Infinity)) return yield* contextLengthFailure(prompt, request)
    return { faults, answer: yield* answerTo(request, prompt) }
  })

  return {
    features: allFeatures,
    complete: Effect.fn("Sandbox.complete")(function* (route: Route, request: ChatRequest) {
      const { answer, faults } = yield* prepare(route, request)
      if (faults.cut !== undefined && faults.cut <= deltasOf(answer).length) return yield* cutFailure(faults.cut)
      return answer
    }),
    stream: Effect.fn("Sandbox.stream")(function* (route: Route, request: ChatRequest) {
      const { answer, faults } = yield* prepare(route, request)
      return yield* Effect.map(awaitStreamEnd, (closed) => pullOf(answer, faults, closed))
    })
  }
}

/** The offline provider. Answers depend only on the request. docs/getting-started.md describes them and their faults. */
export const make: Effect.Effect<Provider, never, TokenCounter> = Effect.map(TokenCounter, (tokens) => ({
  adapter: "sandbox",
  chat: makeChat(tokens),
  image,
  video
}))
