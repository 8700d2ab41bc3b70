import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, FinishReason, ToolCall } from "../../domain/Chat.ts"
import type { Tokens } from "../../services/Tokens.ts"
import type { Script } from "./Script.ts"

type Count = typeof Tokens.Service.count

interface Piece {
  readonly text: string
  readonly tokens: number
  readonly whole: boolean
}

/** The most of `text` that is at most `limit` tokens. */
const cutTo = Effect.fnUntraced(function* (count: Count, text: string, limit: number) {
  const all = yield* count(text)
  if (all <= limit) return { text, tokens: all, whole: true }
  let best: Piece = { text: "", tokens: 0, whole: false }
  let [low, high] = [0, text.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const splitsPair = (text.charCodeAt(middle - 1) & 0xfc00) === 0xd800
    const start = text.slice(0, splitsPair ? middle - 1 : middle)
    const tokens = yield* count(start)
    if (tokens > limit) high = middle - 1
    else {
      low = middle
      best = { text: start, tokens, whole: false }
    }
  }
  return best
})

const untilStop = (text: string, stop: ReadonlyArray<string>): string => {
  const found = stop.flatMap((sequence) => (sequence !== "" && text.includes(sequence) ? [text.indexOf(sequence)] : []))
  return found.length === 0 ? text : text.slice(0, Math.min(...found))
}

/** A script as far as the request's stop sequences and token limit let it be said. Usage lacks the prompt. */
export const limited = Effect.fnUntraced(function* (count: Count, request: ChatRequest, script: Script) {
  const reasoning = yield* cutTo(count, script.reasoning ?? "", request.maxTokens)
  let room = request.maxTokens - reasoning.tokens
  let whole = reasoning.whole

  const text = untilStop(script.content ?? "", request.stop)
  const content = yield* cutTo(count, whole ? text : "", room)
  room -= content.tokens
  whole &&= content.whole

  const toolCalls: Array<ToolCall> = []
  for (const call of script.toolCalls) {
    const name = yield* count(call.function.name)
    whole &&= name <= room
    if (!whole) break
    const input = yield* cutTo(count, call.function.arguments, room - name)
    toolCalls.push({ ...call, function: { name: call.function.name, arguments: input.text } })
    room -= name + input.tokens
    whole = input.whole
  }
  const complete: FinishReason = toolCalls.length > 0 ? "tool_calls" : "stop"
  const answer: Omit<ChatAnswer, "usage"> = {
    content: script.content === undefined ? null : content.text,
    reasoning: script.reasoning === undefined ? undefined : reasoning.text,
    toolCalls,
    finish: whole ? complete : "length"
  }
  return { answer, completion: request.maxTokens - room, reasoning: reasoning.tokens }
})
