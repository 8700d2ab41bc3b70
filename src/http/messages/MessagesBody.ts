import type { IncomingHttpHeaders } from "node:http"
import { Either, flow, Schema } from "effect"
import type { ChatRequest, Message, NativeRequest } from "../../domain/Chat.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { ReasoningEffort } from "../../domain/Model.ts"
import { isAbsent, type JsonObject } from "../body/Guards.ts"
import { refuse } from "../body/Refusals.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { isRefusal, type Result, toEither } from "../chat/Result.ts"
import { problem, reader, readWith } from "../schema/Decoding.ts"
import { cacheControlOf, type NativeShare } from "./Blocks.ts"
import { MessagesRequest } from "./Schema.ts"
import { readChoice, readFormat, readTools } from "./Tools.ts"
import { readConversation, readSystem } from "./Turns.ts"

/** Messages and tools are read by hand: a schema takes several times as long on a long conversation. */
const Body = Schema.Struct({
  ...MessagesRequest.fields,
  messages: readWith(
    Schema.Array(Schema.Unknown).pipe(Schema.minItems(1)),
    flow(readConversation, toEither)
  ).annotations(problem("is required and must be a non-empty array")),
  system: Schema.optional(readWith(Schema.Unknown, flow(readSystem, toEither))),
  tools: Schema.Unknown,
  tool_choice: Schema.Unknown
})

const efforts: ReadonlyMap<string, ReasoningEffort> = new Map([
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "xhigh"],
  ["max", "xhigh"]
])

/** The effort that usually has such a budget. */
const effortOfBudget = (tokens: number): ReasoningEffort => {
  if (tokens <= 4_096) return "low"
  return tokens <= 16_384 ? "medium" : "high"
}

/** Undefined where thinking is not asked for. */
const effortOf = ({ output_config: config, thinking }: typeof Body.Type): ReasoningEffort | undefined => {
  if (thinking?.type !== "enabled" && thinking?.type !== "adaptive") return undefined
  const named = efforts.get(config?.effort ?? "")
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

const readRequest = (body: typeof Body.Type, json: JsonObject, headers: IncomingHttpHeaders): Result<ChatRequest> => {
  const { max_tokens: cap, messages: conversation, model, output_config: config, system = [] } = body
  const { share } = conversation
  const read = readTools(body.tools, share)
  if (isRefusal(read)) return read
  const choice = readChoice(body.tool_choice, read)
  if (isRefusal(choice)) return choice
  const format = isAbsent(config?.format)
    ? readFormat(body.output_format, "output_format")
    : readFormat(config?.format, "output_config.format")
  if (isRefusal(format)) return format
  if (!isAbsent(config?.format)) share.add(body.output_format)
  const messages = [...system, ...conversation.messages]
  if (messages.length === 0 && share.only === undefined) {
    return refuse("messages", "`messages` must hold a text, a picture or a tool's result.")
  }
  return {
    model,
    messages: markLast(messages, json),
    native: nativeOf(json, headers, share, efforts.get(config?.effort ?? "")),
    effortIsHint: true,
    stream: body.stream ?? false,
    includeUsage: true,
    maxTokens: cap ?? Number.MAX_SAFE_INTEGER,
    maxTokensOmitted: true,
    stop: body.stop_sequences ?? [],
    tools: read.tools,
    webSearch: read.webSearch,
    ...choice,
    reasoningEffort: effortOf(body),
    responseFormat: format,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined
  }
}

/** Paths of this API: `messages.0.content`. */
const dotted = (path: string): string => path.replaceAll(/\[(\d+)\]/g, ".$1")

/** Messages with the same text in every dialect. */
const shared: ReadonlySet<string> = new Set([
  "`model` is required.",
  "`messages` is required and must be a non-empty array."
])

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

const read = reader(Body, flow(readRequest, toEither))

export const decodeMessagesBody: ChatDialect["decode"] = (json, headers) => Either.mapLeft(read(json, headers), reword)
