/** `chatApis` are the three chat APIs of the gateway, over which a test can run. */

import { Predicate } from "effect"
import { assert } from "../It.ts"
import { maxOutput } from "../upstream/Upstreams.ts"
import {
  type Answer,
  assertRefused,
  chatPath,
  completeRefusal,
  envelopeOf,
  hintIn,
  post,
  type Refusal
} from "./HttpCalls.ts"

interface Convention {
  readonly path: string
  /** The output cap of a request that sets none. */
  readonly defaultCap: number
  /** Converts a chat completions body to the body of this API. */
  readonly bodyOf: (chat: Readonly<Record<string, unknown>>) => object
  /** The API's names for chat fields that it names differently. */
  readonly fields?: Readonly<Record<string, string>>
  /** Rewords an error message as this API does. */
  readonly reword?: (message: string) => string
  readonly envelope: (refusal: Refusal, requestId: string | null) => unknown
  /** Returns the last event of a broken stream, with those parts of the error that the API sends. */
  readonly lastEvent: (refusal: Refusal) => unknown
  readonly told?: (last: Readonly<Record<string, unknown>>) => unknown
  /** Matches the end of a complete stream. */
  readonly whole: RegExp
}

type Part = Readonly<{ type: string; text?: string; image_url?: Readonly<{ url: string }> }>
interface Message {
  readonly role: string
  readonly content: string | ReadonlyArray<Part>
}

const turned = (messages: unknown, part: (part: Part) => unknown): unknown =>
  Array.isArray(messages)
    ? messages.map((message: Message) => ({
        ...message,
        content: Array.isArray(message.content) ? message.content.map(part) : message.content
      }))
    : messages

const messagesTypes: Readonly<Record<string, string>> = {
  insufficient_quota: "billing_error",
  content_policy_violation: "invalid_request_error",
  service_unavailable: "overloaded_error"
}

const messagesError = ({ code, hint, message, type }: Refusal) => ({
  type: "error",
  error: {
    type: code === "request_too_large" ? code : code === "timeout" ? "timeout_error" : (messagesTypes[type] ?? type),
    message,
    ...(hint === undefined ? {} : { hint })
  }
})

const completions: Convention = {
  path: chatPath,
  defaultCap: 4_096,
  bodyOf: (chat) => chat,
  envelope: envelopeOf,
  lastEvent: envelopeOf,
  whole: /\ndata: \[DONE\]\n\n$/
}

const responses: Convention = {
  path: "/v1/responses",
  defaultCap: maxOutput,
  bodyOf: ({ max_tokens, messages, tools, ...rest }) => ({
    ...rest,
    input: turned(messages, ({ image_url, text }) =>
      image_url === undefined ? { type: "input_text", text } : { type: "input_image", image_url: image_url.url }
    ),
    max_output_tokens: max_tokens,
    ...(Array.isArray(tools) ? { tools: tools.map((tool) => ({ type: "function", ...tool.function })) } : {})
  }),
  fields: { messages: "input", max_tokens: "max_output_tokens" },
  reword: (message) => message.replace(/(?<=^`input` is required and must be a).*/, " string or an array of items."),
  envelope: envelopeOf,
  lastEvent: ({ hint, message }) => ({
    type: "response.failed",
    error: { code: "server_error", message, ...(hint === undefined ? {} : { hint }) }
  }),
  told: ({ response, type }) => ({ type, error: Predicate.isRecord(response) ? response["error"] : undefined }),
  whole: /event: response\.completed\ndata: [^\n]*\n\n$/
}

const messages: Convention = {
  path: "/v1/messages",
  defaultCap: maxOutput,
  bodyOf: ({ messages, tools, ...rest }) => ({
    ...rest,
    messages: turned(messages, (part) =>
      part.image_url === undefined
        ? part
        : {
            type: "image",
            source: { type: "base64", media_type: "image/png", data: part.image_url.url.replace(/^.*,/, "") }
          }
    ),
    ...(Array.isArray(tools)
      ? { tools: tools.map(({ function: { name, parameters } }) => ({ name, input_schema: parameters })) }
      : {})
  }),
  reword: (message) => message.replace(/^`([^`]+)` (?=must be)/, "$1: ").replace("from 0 to 2", "from 0 to 1"),
  envelope: (refusal, requestId) => ({ ...messagesError(refusal), request_id: requestId }),
  lastEvent: messagesError,
  whole: /event: message_stop\ndata: [^\n]*\n\n$/
}

const wayOf = (convention: Convention) => {
  const { bodyOf, defaultCap, envelope, lastEvent, path, whole } = convention
  const { fields = {}, reword = (message) => message, told = (last) => last } = convention
  const named = ({ message, param, ...refusal }: Refusal): Refusal => {
    const name = fields[param ?? ""] ?? param ?? null
    const renamed = message.replaceAll(`\`${param}\``, `\`${name}\``)
    return { ...refusal, param: name, message: refusal.status === 400 ? reword(renamed) : renamed }
  }
  const body = (chat: unknown) => (Predicate.isRecord(chat) ? bodyOf(chat) : chat)
  const ask = post(path)
  const send: typeof ask = (customer, chat, sent) => ask(customer, body(chat), sent)
  return {
    path,
    defaultCap,
    body,
    /** Sends a chat's body. A text is sent unchanged. */
    send,
    /** Asserts that the answer is this error of chat completions in the form of this API. */
    assertRefused: (answer: Answer, refusal: Refusal) => {
      const told = named(completeRefusal(refusal, hintIn(answer.text)))
      assertRefused(answer, told, envelope(told, answer.headers.get("x-request-id")))
    },
    whole,
    /** Asserts that a stream broke: its status stays 200, and it ends with this error instead of the regular end. */
    assertBroken: ({ status, text }: Pick<Answer, "status" | "text">, refusal: Refusal) => {
      assert.strictEqual(status, 200)
      const [last = ""] = text.split("\ndata: ").slice(-1)
      assert.deepStrictEqual<unknown>(told(JSON.parse(last)), lastEvent(refusal))
      assert.notMatch(text, whole)
    }
  }
}

export type ChatApi = ReturnType<typeof wayOf>

export const chatCompletions = wayOf(completions)
export const agentWays = [wayOf(responses), wayOf(messages)]
/** All chat APIs. */
export const chatApis = [chatCompletions, ...agentWays]
