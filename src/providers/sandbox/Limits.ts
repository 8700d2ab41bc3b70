import { Effect } from "effect"
import type { ChatAnswer, ChatRequest, FinishReason, ToolCall } from "../../domain/Chat.ts"
import { type Count, cutTo } from "../../services/chat/TokenCut.ts"
import type { Script } from "./Script.ts"

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
