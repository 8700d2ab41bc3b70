import { Effect } from "effect"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { json } from "../Answer.ts"
import type { Endpoint } from "../admission/Admission.ts"
import { makeTaskReader } from "../chat/ChatTasks.ts"
import { encodeMessagesError, messagesPath } from "./Errors.ts"
import { messages } from "./MessagesDialect.ts"

/** Holds and charges nothing, and leaves no row in the log. */
export const countTokensEndpoint = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const read = yield* makeTaskReader
  const endpoint: Endpoint = {
    path: `${messagesPath}/count_tokens`,
    surface: "chat",
    admitsWithHold: false,
    isFree: true,
    idHeader: messages.idHeader,
    encodeError: encodeMessagesError,
    answer: (admitted) => {
      admitted.record.isLogged = true
      return Effect.map(Effect.flatMap(read(messages, admitted), chat.countTokens), (counted) =>
        json(200, { input_tokens: counted }, admitted.headers())
      )
    }
  }
  return endpoint
})
