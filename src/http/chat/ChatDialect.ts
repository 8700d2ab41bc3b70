import { completionJson, SseEncoder } from "./ChatAnswer.ts"
import { decodeChatBody } from "./ChatBody.ts"
import type { ChatDialect } from "./Dialect.ts"

export const chatCompletions: ChatDialect = {
  path: "/v1/chat/completions",
  idPrefix: "chatcmpl",
  fitsHold: false,
  decode: decodeChatBody,
  encodeAnswer: (name, _request, answer, usage) => completionJson(name, answer, usage),
  encoder: (name, { includeUsage }) => new SseEncoder(name, includeUsage)
}
