import { servedPath } from "../schema/ServedPath.ts"
import { completionJson, SseEncoder } from "./ChatAnswer.ts"
import { decodeChatBody } from "./ChatBody.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { completeChat } from "./Schema.ts"

export const chatCompletions: ChatDialect = {
  path: servedPath(completeChat),
  idPrefix: "chatcmpl",
  hasFittedHold: false,
  decode: decodeChatBody,
  encodeAnswer: (name, { customTools, includeCost = false }, answer, usage, charge) =>
    completionJson(name, answer, usage, includeCost ? charge : undefined, customTools),
  encoder: (name, { customTools, includeCost, includeUsage }) =>
    new SseEncoder(name, includeUsage, includeCost, customTools)
}
