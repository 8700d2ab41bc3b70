import type { ChatAnswer, ChatEvent } from "../../domain/Chat.ts"

/** Words with the space before them, as tokens come; a long word comes in parts. */
const wordsIn = (text: string): ReadonlyArray<string> => text.match(/\s*\S{1,20}|\s+/gu) ?? []

/** The output of an answer as a provider would stream it. */
export const deltasOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => [
  ...wordsIn(answer.reasoning ?? "").map((text): ChatEvent => ({ type: "reasoning", text })),
  ...wordsIn(answer.content ?? "").map((text): ChatEvent => ({ type: "content", text })),
  ...answer.toolCalls.flatMap(
    (call, index): ReadonlyArray<ChatEvent> => [
      { type: "tool_call", index, id: call.id, name: call.function.name, arguments: "" },
      ...wordsIn(call.function.arguments).map((text): ChatEvent => ({ type: "tool_call", index, arguments: text }))
    ]
  )
]

/** What ends a stream after its output. */
export const endOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => [
  { type: "finish", reason: answer.finish },
  ...(answer.usage === undefined ? [] : [{ type: "usage" as const, usage: answer.usage }])
]
