import { decodeChatBody } from "../../../src/http/chat/ChatBody.ts"
import { agreeing, judging } from "../openapi/Published.ts"

export const hi = { role: "user", content: "hi" }
export const base = { model: "m", messages: [hi] }
export const png = "data:image/png;base64,iVBORw0KGgo="
export const imageUrl = (url: unknown) => ({ type: "image_url", image_url: { url } })
export const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } })
export const tool = (name: string, over: object = {}) => ({ type: "function", function: { name, ...over } })
export const chatBody = (...messages: ReadonlyArray<unknown>) => ({ model: "m", messages })

/** For bodies too large or too deep for a JSON Schema's validator. */
export const unchecked = judging(decodeChatBody)

export const { refusal, taken: decodeBody } = agreeing({ json: "ChatCompletionRequest" }, decodeChatBody)
