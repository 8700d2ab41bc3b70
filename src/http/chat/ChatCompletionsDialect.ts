import { servedPath } from "../schema/ServedPath.ts"
import { completionJson, SseEncoder } from "./ChatAnswer.ts"
import { decodeChatBody } from "./ChatBody.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { completeChat } from "./Schema.ts"

export const chatCompletions: ChatDialect = {
  path: servedPath(completeChat),
  idPrefix: "chatcmpl",
  fitsHold: false,
  decode: decodeChatBody,
  encodeAnswer: (name, _request, answer, usage) => completionJson(name, answer, usage),
  encoder: (name, { includeUsage }) => new SseEncoder(name, includeUsage)
}
