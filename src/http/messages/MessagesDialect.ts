import { Effect, Exit } from "effect"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { makeBoundedKeyedSemaphore } from "../../services/runtime/KeyedSemaphore.ts"
import { json } from "../Answer.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { makeTaskReader } from "../chat/ChatTasks.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { messageJson, showsThinking } from "./MessagesAnswer.ts"
import { decodeMessagesBody } from "./MessagesBody.ts"
import { encodeMessagesError, messagesFields, messagesIdHeader } from "./MessagesErrors.ts"
import { countTokens, createMessage } from "./MessagesSchema.ts"
import { MessagesEncoder } from "./MessagesStream.ts"

export const messages: ChatDialect = {
  path: servedPath(createMessage),
  idPrefix: "msg",
  hasFittedHold: true,
  namesUserInMetadata: true,
  idHeader: messagesIdHeader,
  decode: decodeMessagesBody,
  encodeAnswer: messageJson,
  encoder: (name, request) => new MessagesEncoder(name, showsThinking(request)),
  fieldNames: messagesFields,
  encodeError: encodeMessagesError
}

/** The limit for each organization: counts are free, but take time and memory. */
const atOnce = 2
/** Agents ask for some dozens of counts at once. */
const waiting = 64

/** Holds and charges nothing, and leaves no row in the log. */
export const countTokensEndpoint = Effect.gen(function* () {
  const chat = yield* ChatCompletions
  const read = yield* makeTaskReader
  const withPermitOf = makeBoundedKeyedSemaphore(atOnce, waiting)

  const count = (admission: Admission) =>
    Effect.flatMap(read(messages, admission), (task) =>
      Effect.zipRight(admission.checkSolvency, chat.countTokens(task))
    )

  const endpoint: Endpoint = {
    path: servedPath(countTokens),
    surface: "chat",
    admitsWithHold: false,
    idHeader: messages.idHeader,
    encodeError: encodeMessagesError,
    handle: (admission) => {
      const { departure, headers, record } = admission
      record.add({ type: "unlogged" })
      const counting = departure.interrupts(withPermitOf(record.facts.caller.org)(count(admission)))
      return Effect.flatMap(counting, (exit) =>
        departure.isOver && Exit.isInterrupted(exit)
          ? Effect.succeed(undefined)
          : Effect.map(exit, (counted) => json(200, { input_tokens: counted }, headers()))
      )
    }
  }
  return endpoint
})
