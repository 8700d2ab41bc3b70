import { Effect } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { countValues } from "../../domain/Json.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { refuse } from "../body/Fields.ts"
import { bodyLimits } from "../body/JsonReader.ts"

/** Bytes of a body past which a request is worked on in slices. */
export const largeRequest = 256 * 1024

const most = bodyLimits.values.toLocaleString("en-US")
const tooMany = refuse("messages", `The arguments of all tool calls must hold at most ${most} values together.`)

/** Whether the arguments of all tool calls, which are JSON in JSON, can be parsed in one go. */
function* holdsFewArguments({ messages }: ChatRequest): EventLoop.Steps<boolean> {
  let values = 0
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const call of message.tool_calls ?? []) values += yield* countValues(call.function.arguments)
    if (values > bodyLimits.values) return false
  }
  return true
}

export const largeChat = (request: ChatRequest): Effect.Effect<ChatRequest, InvalidRequest> =>
  Effect.flatMap(EventLoop.inSlices(holdsFewArguments(request)), (isUsable) =>
    isUsable ? Effect.succeed({ ...request, isLarge: true }) : tooMany
  )
