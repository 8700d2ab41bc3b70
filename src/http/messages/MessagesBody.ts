import type { IncomingHttpHeaders } from "node:http"
import { Either, Schema } from "effect"
import type { ChatRequest, Message, NativeRequest } from "../../domain/Chat.ts"
import { Anything, atLeast, Integer, optional } from "../../domain/Constraints.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { type ReasoningEffort, reasoningEfforts } from "../../domain/Model.ts"
import { isAbsent, isOneOf, type JsonObject } from "../body/Guards.ts"
import { refuse } from "../body/Refusals.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { TextPartSchema } from "../chat/ContentParts.ts"
import { problem, reader, reading, readWith } from "../schema/Decoding.ts"
import {
  AnyObject,
  anObject,
  conversationOf,
  conversationProblem,
  effortOf,
  endUser,
  modelOf,
  numberFrom,
  StopTexts,
  samplingOnly,
  stopsProblem,
  streamField,
  TokenCap,
  textOr
} from "../schema/SharedFields.ts"
import { cacheControlOf, type NativeShare } from "./ContentBlocks.ts"
import {
  MessagesOtherTool,
  MessagesTool,
  MessagesToolChoice,
  readChoice,
  readFormat,
  readTools
} from "./MessagesTools.ts"
import { AssistantTurn, readConversation, readSystem, SystemTurn, UserTurn } from "./Turns.ts"

const Budget = Integer.pipe(atLeast(0)).annotations(problem("must be an integer of at least 0"))
const Stops = StopTexts.annotations(stopsProblem("must be an array of non-empty strings"))

const prompt = {
  model: modelOf("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(UserTurn, AssistantTurn, SystemTurn)).annotations({
    description: "The conversation so far, oldest first."
  }),
  system: optional(textOr(TextPartSchema), "The system prompt."),
  tools: optional(Schema.Array(Schema.Union(MessagesTool, MessagesOtherTool)), "What the model may call."),
  tool_choice: optional(MessagesToolChoice, "Whether the model may or must call a tool, or which one."),
  thinking: optional(
    Schema.Struct({ type: optional(Schema.String), budget_tokens: optional(Budget) }).annotations(anObject),
    "`enabled` with `budget_tokens`, `adaptive` or `disabled`. A model that cannot reason so does what is nearest."
  ),
  output_config: optional(
    Schema.Struct({ effort: optional(Schema.String), format: optional(Anything) }).annotations(anObject),
    "`effort` from `low` to `max`; `format` is `{type: json_schema, schema}`."
  ),
  output_format: optional(Anything, "The older place of `output_config.format`."),
  cache_control: optional(Anything, "Caches the prompt up to its last block.")
}

export const MessagesRequest = Schema.Struct({
  ...prompt,
  max_tokens: optional(TokenCap, "Default: the model's own cap, to which a higher one is lowered."),
  stream: streamField,
  stop_sequences: optional(Stops, "Generation stops before any of these texts."),
  temperature: optional(numberFrom(0, 1), `Default 1. ${samplingOnly}`),
  top_p: optional(numberFrom(0, 1), samplingOnly),
  top_k: optional(Schema.Number.annotations(problem("must be a number")), "For routes that speak this API."),
  metadata: optional(
    AnyObject.annotations(anObject),
    "For routes that speak this API, but for `user_id`, which is kept as a `user` is."
  ),
  ...endUser
}).annotations({ identifier: "MessagesRequest" })

export const CountTokensRequest = Schema.Struct(prompt).annotations({ identifier: "CountTokensRequest" })

/** Messages and tools are read by hand, for the reasons of `http/chat/ChatBody.ts`. */
const Body = Schema.Struct({
  ...MessagesRequest.fields,
  messages: conversationOf(readConversation),
  system: Schema.optional(readWith(Schema.Unknown, reading(readSystem))),
  tools: Schema.Unknown,
  tool_choice: Schema.Unknown
})

const isEffort = isOneOf(...reasoningEfforts, "max")

/** Undefined for a word of tomorrow, too. */
const namedEffort = ({ output_config: config }: typeof Body.Type): ReasoningEffort | undefined =>
  isEffort(config?.effort) ? effortOf(config.effort) : undefined

/** The effort that usually has such a budget. */
const effortOfBudget = (tokens: number): ReasoningEffort => {
  if (tokens <= 4_096) return "low"
  return tokens <= 16_384 ? "medium" : "high"
}

/** Undefined where thinking is not asked for. */
const thinkingEffort = (body: typeof Body.Type): ReasoningEffort | undefined => {
  const { thinking } = body
  if (thinking?.type !== "enabled" && thinking?.type !== "adaptive") return undefined
  const named = namedEffort(body)
  if (named !== undefined) return named
  return isAbsent(thinking.budget_tokens) ? "high" : effortOfBudget(thinking.budget_tokens)
}

const passedOn = ["anthropic-beta", "anthropic-version"] as const

/** Fields that add nothing to a prompt. */
const promptless: ReadonlySet<string> = new Set([...Object.keys(MessagesRequest.fields), "context_management"])

const nativeOf = (
  body: JsonObject,
  headers: IncomingHttpHeaders,
  share: NativeShare,
  effort: ReasoningEffort | undefined
): NativeRequest => {
  for (const name in body) if (!promptless.has(name)) share.add(body[name])
  const sent = passedOn.flatMap((name) => {
    const value = headers[name]
    return typeof value === "string" ? [[name, value] as const] : []
  })
  return {
    dialect: "messages",
    body,
    headers: Object.fromEntries(sent),
    extraTokens: share.tokens,
    effort,
    only: share.only
  }
}

/** Caches up to the last block, as the field of the whole request says. */
const markLast = (messages: ReadonlyArray<Message>, body: JsonObject): ReadonlyArray<Message> => {
  const mark = cacheControlOf(body)
  const last = messages.at(-1)
  return last === undefined || mark.cache_control === undefined
    ? messages
    : [...messages.slice(0, -1), { ...last, ...mark }]
}

const readRequest = (body: typeof Body.Type, json: JsonObject, headers: IncomingHttpHeaders): ChatRequest => {
  const { max_tokens: cap, messages: conversation, model, output_config: config, system = [] } = body
  const { share } = conversation
  const read = readTools(body.tools, share)
  const choice = readChoice(body.tool_choice, read)
  const format = isAbsent(config?.format)
    ? readFormat(body.output_format, "output_format")
    : readFormat(config?.format, "output_config.format")
  if (!isAbsent(config?.format)) share.add(body.output_format)
  const messages = [...system, ...conversation.messages]
  if (messages.length === 0 && share.only === undefined) {
    throw refuse("messages", "`messages` must hold a text, a picture or a tool's result.")
  }
  return {
    model,
    messages: markLast(messages, json),
    native: nativeOf(json, headers, share, namedEffort(body)),
    effortIsHint: true,
    stream: body.stream ?? false,
    includeUsage: true,
    maxTokens: cap ?? Number.MAX_SAFE_INTEGER,
    maxTokensOmitted: true,
    stop: body.stop_sequences ?? [],
    tools: read.tools,
    webSearch: read.webSearch,
    ...choice,
    reasoningEffort: thinkingEffort(body),
    responseFormat: format,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined
  }
}

/** Paths of this API: `messages.0.content`. */
const dotted = (path: string): string => path.replaceAll(/\[(\d+)\]/g, ".$1")

/** Messages with the same text in every dialect. */
const shared: ReadonlySet<string> = new Set(["`model` is required.", `\`messages\` ${conversationProblem}.`])

/** In the words of this API: `messages.0.content: must be …`. */
const rewordMessage = (message: string): string =>
  message
    .replace(/^`([^`]+)` /, (_, path: string) => `${dotted(path)}: `)
    .replace(/: is required\.$/, ": Field required")

const reword = ({ hint, message, param }: InvalidRequest): InvalidRequest =>
  new InvalidRequest({
    message: shared.has(message) ? message : rewordMessage(message),
    param,
    hint: hint?.replaceAll(/`[^`]+`/g, dotted)
  })

const read = reader(Body, readRequest)

export const decodeMessagesBody: ChatDialect["decode"] = (json, headers) => Either.mapLeft(read(json, headers), reword)
