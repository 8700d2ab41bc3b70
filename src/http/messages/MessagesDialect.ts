import type { ChatDialect } from "../chat/ChatDialect.ts"
import { servedPath } from "../schema/ServedPath.ts"
import { messageJson, showsThinking } from "./Answer.ts"
import { encodeMessagesError, messagesFields, messagesIdHeader } from "./Errors.ts"
import { decodeMessagesBody } from "./MessagesBody.ts"
import { createMessage } from "./Schema.ts"
import { MessagesEncoder } from "./Stream.ts"

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
