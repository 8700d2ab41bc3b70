import type { ChatDialect } from "../chat/Dialect.ts"
import { messageJson, showsThinking } from "./Answer.ts"
import { decodeMessagesBody } from "./Body.ts"
import { encodeMessagesError, messagesIdHeader, messagesPath } from "./Errors.ts"
import { MessagesEncoder } from "./Stream.ts"

export const messages: ChatDialect = {
  path: messagesPath,
  idPrefix: "msg",
  fitsHold: true,
  idHeader: messagesIdHeader,
  decode: decodeMessagesBody,
  encodeAnswer: messageJson,
  encoder: (name, request) => new MessagesEncoder(name, showsThinking(request)),
  encodeError: encodeMessagesError
}
