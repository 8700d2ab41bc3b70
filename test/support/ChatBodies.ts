import { Either } from "effect"
import type { ChatRequest } from "../../src/domain/Chat.ts"
import { decodeChatBody } from "../../src/http/ChatBody.ts"

export const hi = { role: "user", content: "hi" }
export const base = { model: "m", messages: [hi] }
export const png = "data:image/png;base64,iVBORw0KGgo="
export const imageUrl = (url: unknown) => ({ type: "image_url", image_url: { url } })
export const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
export const tool = (name: string, over: object = {}) => ({ type: "function", function: { name, ...over } })
export const said = (...messages: ReadonlyArray<unknown>) => ({ model: "m", messages })

/** What a body that must be accepted is read as. */
export const taken = (body: unknown): ChatRequest =>
  Either.getOrThrowWith(decodeChatBody(body), ({ message }) => new Error(message))

/** Tag, param and message of the refusal of a body. */
export const refusal = (body: unknown) => {
  const result = decodeChatBody(body)
  return Either.isLeft(result) ? [result.left._tag, result.left.param, result.left.message] : "accepted"
}
