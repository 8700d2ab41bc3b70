import type { ReasoningEffort } from "./Model.ts"
import type { NanoUsd } from "./Money.ts"
import type { TokenCount } from "./TokenKinds.ts"

/** Asks the provider to cache the prompt up to this part. Without a `ttl` the cache lasts five minutes. */
export interface CacheControl {
  readonly type: "ephemeral"
  readonly ttl?: "5m" | "1h" | undefined
}

interface Cacheable {
  readonly cache_control?: CacheControl | undefined
}

export interface TextPart extends Cacheable {
  readonly type: "text"
  readonly text: string
}

export interface ImagePart extends Cacheable {
  readonly type: "image_url"
  readonly image_url: { readonly url: string; readonly detail?: string | undefined }
}

export type Part = TextPart | ImagePart

export interface ToolCall {
  readonly id: string
  readonly type: "function"
  readonly function: { readonly name: string; readonly arguments: string }
  /** Opaque. The provider expects it back with the call's result; our API carries it inside the call's id. */
  readonly signature?: string | undefined
}

export type Message = Cacheable &
  (
    | {
        readonly role: "system"
        readonly content: string | ReadonlyArray<TextPart>
        readonly name?: string | undefined
      }
    | { readonly role: "user"; readonly content: string | ReadonlyArray<Part>; readonly name?: string | undefined }
    | {
        readonly role: "assistant"
        readonly content: string | ReadonlyArray<TextPart> | null
        readonly name?: string | undefined
        readonly reasoning_content?: string | undefined
        readonly tool_calls?: ReadonlyArray<ToolCall> | undefined
      }
    | { readonly role: "tool"; readonly content: string | ReadonlyArray<TextPart>; readonly tool_call_id: string }
  )

export interface Tool extends Cacheable {
  readonly type: "function"
  readonly function: {
    readonly name: string
    readonly description?: string | undefined
    readonly parameters?: Readonly<Record<string, unknown>> | undefined
    readonly strict?: boolean | null | undefined
  }
}

export type ToolChoice =
  | "auto"
  | "none"
  | "required"
  | { readonly type: "function"; readonly function: { readonly name: string } }

export type ResponseFormat =
  | { readonly type: "json_object" }
  | {
      readonly type: "json_schema"
      readonly json_schema: {
        readonly name: string
        readonly description?: string | undefined
        readonly schema?: Readonly<Record<string, unknown>> | undefined
        readonly strict?: boolean | null | undefined
      }
    }

/** The wire format of the client; `chat` is the chat-completions convention. */
type Dialect = "chat" | "responses" | "messages"

/** The request as the client sent it, for routes that speak the client's dialect. */
export interface NativeRequest {
  readonly dialect: Exclude<Dialect, "chat">
  /**
   * Decoded JSON. An adapter replaces the fields that the gateway decides: the model, caps, `stream`, and features with
   * their own price.
   */
  readonly body: Readonly<Record<string, unknown>>
  /** Headers that are forwarded to the provider, such as `anthropic-beta`. */
  readonly headers: Readonly<Record<string, string>>
  /** An upper bound of the prompt tokens that only the native body contains. */
  readonly extraTokens: number
  /**
   * The effort in the body. `applyRules` sets it to the supported effort that replaces it, or to undefined if the model
   * supports it.
   */
  readonly effort?: ReasoningEffort | "none" | undefined
  readonly nativeOnly?: NativeOnly | undefined
}

/**
 * Content of the client's original body that the common chat format cannot express. Only providers that get the original
 * body receive it.
 */
export interface NativeOnly {
  /** The chat-completions field that error messages name. */
  readonly param: string
  /** The feature's name in messages. */
  readonly what: string
}

/** A decoded chat request: role `developer` is `system`, aliases are resolved, `type: text` formats are removed. */
export interface ChatRequest {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  /** `messages` with every image as a `data:` URL; undefined if no route needs it. */
  readonly inlined?: ReadonlyArray<Message> | undefined
  readonly isLarge?: boolean | undefined
  readonly native?: NativeRequest | undefined
  /** The same id for all requests in which an organization continues one conversation with a model. */
  readonly conversation?: string | undefined
  /** If the model does not support the effort, it gets the nearest supported one, or none. */
  readonly isEffortHint?: boolean | undefined
  /** Models and routes without web search ignore `webSearch`. */
  readonly isWebSearchHint?: boolean | undefined
  /** At providers that support it, requests with the same key share a prompt cache. */
  readonly promptCacheKey?: string | undefined
  readonly promptCacheRetention?: "in_memory" | "24h" | undefined
  /**
   * The cache breakpoints that are not sent because the model has no price for their cache writes: all, or only one-hour
   * ones.
   */
  readonly unpricedBreakpoints?: "all" | "hour" | undefined
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Adds the charge to the usage. */
  readonly includeCost?: boolean | undefined
  /** Clamped to the model's limit after the model lookup. */
  readonly maxTokens: number
  /** The client sent no cap, so `maxTokens` is the default, which is never refused. */
  readonly hasDefaultMaxTokens?: boolean | undefined
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  readonly stop: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Tool>
  readonly webSearch: boolean
  /** The model's limit of searches per request, sent to providers that support one. */
  readonly maxWebSearches?: number | undefined
  /** The model's context length, in tokens. */
  readonly contextLength?: number | undefined
  /** The names of those `tools` whose input is free text. The client receives their calls as custom tool calls. */
  readonly customTools?: ReadonlySet<string> | undefined
  readonly toolChoice?: ToolChoice | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly reasoningEffort?: ReasoningEffort | undefined
  readonly responseFormat?: ResponseFormat | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  /** An integer of up to 64 bits; a bigint if a number would lose digits. */
  readonly seed?: number | bigint | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** Counts include those of their parts: `partKinds` of `TokenKinds.ts`, and `reasoning` in `completion`. */
export interface Usage extends Readonly<Partial<Record<TokenCount, number | undefined>>> {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly cacheWrite: number
  readonly reasoning: number
  /** Web searches, each of which is charged. */
  readonly webSearches?: number | undefined
  /** The provider-reported cost, for the operator's reports only; null: it reports none. */
  readonly statedCost?: NanoUsd | null | undefined
}

/** A source of the answer's text, such as a search result. */
export interface Citation {
  readonly url: string
  readonly title?: string | undefined
  /** The passage of the source that supports the answer. */
  readonly quote?: string | undefined
  /** The part of `content` that the source supports, in UTF-16 units; `end` is exclusive. */
  readonly start?: number | undefined
  readonly end?: number | undefined
}

/** A part of an answer that the gateway does not know. */
export interface UnknownPart {
  readonly part: "stop_reason" | "usage" | "block"
  /** The unknown value if it is short and printable, else only its type, so the log contains no model output. */
  readonly detail: string
}

export interface ChatAnswer {
  readonly content: string | null
  readonly reasoning: string | undefined
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly finish: FinishReason
  /** The client's stop sequence that ended the answer, if known. */
  readonly stopSequence?: string | undefined
  readonly citations?: ReadonlyArray<Citation> | undefined
  readonly unread?: ReadonlyArray<UnknownPart> | undefined
  /** The provider does not charge for the answer, even if it reports tokens. */
  readonly isFree?: boolean | undefined
  readonly usage: Usage | undefined
  /** The provider's complete response body to a native request. */
  readonly native?: Readonly<Record<string, unknown>> | undefined
}

/**
 * Each provider event of a native request is a `native` event, followed by its translation into the other types. `index`
 * counts tool calls from 0. The last event is `finish` or `usage`. Each `usage` replaces the one before.
 */
export type ChatEvent =
  | { readonly type: "content"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | {
      readonly type: "tool_call"
      readonly index: number
      readonly id?: string | undefined
      readonly name?: string | undefined
      /** A fragment of the JSON text, to append to the fragments with the same `index`. */
      readonly arguments: string
      readonly signature?: string | undefined
    }
  /** The provider has begun to generate. Not sent to clients. */
  | { readonly type: "begin" }
  | { readonly type: "citation"; readonly citation: Citation }
  | { readonly type: "unread"; readonly unread: UnknownPart }
  | {
      readonly type: "finish"
      readonly reason: FinishReason
      readonly stopSequence?: string | undefined
      /** The provider does not charge for the answer, even if it reports tokens. */
      readonly isFree?: boolean | undefined
    }
  | {
      readonly type: "usage"
      readonly usage: Usage
      /** The counts of an unfinished answer. */
      readonly isPartial?: boolean | undefined
    }
  | {
      readonly type: "native"
      readonly event: Readonly<Record<string, unknown>>
      /** The event begins output, after which the stream may be silent for minutes. */
      readonly isOutput?: boolean | undefined
    }

/** Whether the event contains output. After output a stream cannot fail over to another route. */
export const isDelta = (event: ChatEvent): boolean => {
  if (event.type === "native") return event.isOutput === true
  return "text" in event ? event.text !== "" : event.type === "tool_call"
}

/**
 * The signature that clients receive for unsigned reasoning. When they send the reasoning back, the gateway removes it,
 * because no provider would accept it.
 */
export const unsignedMark = "ggw-unsigned"

export const callIdMark = "~sig~"
const maxSignatureLength = 16_384

interface CallId {
  readonly id: string
  readonly signature?: string
}

/** Returns the id of a tool call as clients get it. It includes the signature if that has at most 16384 characters. */
export const encodeCallId = (id: string, signature: string | undefined): string =>
  signature === undefined || signature.length > maxSignatureLength ? id : `${id}${callIdMark}${signature}`

export const readCallId = (clientId: string): CallId => {
  const at = clientId.indexOf(callIdMark)
  return at < 1 ? { id: clientId } : { id: clientId.slice(0, at), signature: clientId.slice(at + callIdMark.length) }
}
