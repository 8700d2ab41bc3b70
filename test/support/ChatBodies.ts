import { Either } from "effect"
import type { ChatRequest } from "../../src/domain/Chat.ts"
import { decodeChatBody } from "../../src/http/chat/ChatBody.ts"
import { assertAgreement } from "./Published.ts"

export const hi = { role: "user", content: "hi" }
export const base = { model: "m", messages: [hi] }
export const png = "data:image/png;base64,iVBORw0KGgo="
export const imageUrl = (url: unknown) => ({ type: "image_url", image_url: { url } })
export const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
export const tool = (name: string, over: object = {}) => ({ type: "function", function: { name, ...over } })
export const said = (...messages: ReadonlyArray<unknown>) => ({ model: "m", messages })

/** What a body that must be accepted is read as, and tag, param and message of the refusal of one. */
const judging = (decode: typeof decodeChatBody) => ({
  taken: (body: unknown): ChatRequest => Either.getOrThrowWith(decode(body), ({ message }) => new Error(message)),
  refusal: (body: unknown) => {
    const result = decode(body)
    return Either.isLeft(result) ? [result.left._tag, result.left.param, result.left.message] : "accepted"
  }
})

/** For bodies too large or too deep for a JSON Schema's validator. */
export const unchecked = judging(decodeChatBody)

/** Proves of each body that the published schema says the same of it as the decoder. */
export const { refusal, taken } = judging((body) => {
  const decoded = decodeChatBody(body)
  assertAgreement({ json: "ChatCompletionRequest" }, body, Either.isLeft(decoded) ? decoded.left.message : undefined)
  return decoded
})
