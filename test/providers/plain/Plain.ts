import { Schema } from "effect"
import type { FinishReason, Message, Usage } from "../../../src/domain/Chat.ts"
import { answerDecoder, finishOf, pushEnd, usageOf } from "../../../src/providers/chat/AnswerReaders.ts"
import { makeChatProvider } from "../../../src/providers/chat/ChatClient.ts"
import type { ChatDecoder } from "../../../src/providers/chat/WireStream.ts"
import { asCount, asFields, asText, withoutUndefined } from "../../../src/providers/client/JsonFields.ts"
import { makeOptions, optional } from "../../../src/providers/client/RouteOptions.ts"

const Options = Schema.Struct({ tone: optional(Schema.String) })
const options = makeOptions(Options, (decoded) => decoded)

const encodeTurn = ({ content, role }: Message) => ({
  who: role,
  text:
    typeof content === "string" ? content : (content ?? []).map((part) => ("text" in part ? part.text : "")).join("")
})

const reasonOf = (end: unknown): FinishReason | undefined => (end === "limit" ? "length" : undefined)

const decodeUsage = (spent: unknown): Usage | undefined => {
  const counts = asFields(spent)
  const none = { cached: 0, cacheWrite: 0, reasoning: 0 }
  return usageOf({ prompt: asCount(counts.in), completion: asCount(counts.out), ...none })
}

const Answer = Schema.Struct({ text: Schema.String, end: Schema.Unknown, spent: Schema.Unknown })

const decodeAnswer = answerDecoder(Answer, "an answer without a text", ({ end, spent, text }) => {
  return { text, reasoning: "", calls: [], finish: reasonOf(end), usage: decodeUsage(spent) }
})

const decoder: ChatDecoder = {
  take: (event, out) => {
    const text = asText(event.text)
    if (text !== "") out.push({ type: "content", text })
    if (event.end === undefined) return undefined
    return pushEnd(out, finishOf(reasonOf(event.end), { hasCalls: false }), decodeUsage(event.spent))
  },
  startsGeneration: ({ text }) => text !== undefined,
  // The host reports usage only in its last event, so a broken stream has none.
  usage: () => undefined
}

/**
 * An example to copy, for a made-up host: `POST /generate` with the key in `x-key`. It answers `{"text", "end", "spent"}`, or
 * events, the last one with an `end`. It supports only text, stop sequences and sampling.
 */
export const make = makeChatProvider<typeof Options.Type, {}>("plain", {
  optionsDecoder: options,
  features: () => new Set(["sampling"]),
  // The history may contain another model's calls.
  findUnsupportedField: (_route, { messages }) =>
    messages.some(({ role }) => role === "tool") ? "messages" : undefined,
  endpoint: () => ({ path: "/generate", authorization: (secret) => ({ "x-key": secret }) }),
  encode: ({ isStream, options: { tone }, request, route }) => ({
    model: route.model,
    turns: request.messages.map(encodeTurn),
    limit: request.maxTokens,
    stop: request.stop,
    stream: isStream,
    ...withoutUndefined({ temperature: request.temperature, top_p: request.topP, tone })
  }),
  decode: (body, { newId }) => decodeAnswer(body, newId),
  decoder: () => decoder,
  // A successful answer may have `"error": null`.
  errorIn: (body) => (body.error ? body : undefined),
  usageIn: ({ spent }) => decodeUsage(spent),
  quirks: () => ({})
})
