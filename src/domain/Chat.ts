import type { ReasoningEffort } from "./Model.ts"
import type { NanoUsd } from "./Money.ts"

/** The prompt up to the marked part is worth caching; without a `ttl` for five minutes. */
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
  /** Opaque, wanted back by the provider; on our wire it travels inside the id. */
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

/** A way in for chats; `chat` is the chat-completions convention. */
export type Dialect = "chat" | "responses" | "messages"

/** What the client sent, for a route that speaks the client's dialect. */
export interface NativeRequest {
  readonly dialect: Exclude<Dialect, "chat">
  /** As decoded from JSON: an adapter replaces what the gateway owns (model, caps, stream, what costs extra). */
  readonly body: Readonly<Record<string, unknown>>
  /** For the host, such as `anthropic-beta`. */
  readonly headers: Readonly<Record<string, string>>
  /** An upper bound, in tokens, of the prompt that only the native body holds. */
  readonly extraTokens: number
  /** The effort in the body. After the rules: its replacement, undefined if the model has that effort. */
  readonly effort?: ReasoningEffort | "none" | undefined
  /** What no translation carries: only routes of the dialect can serve the request. */
  readonly only?: NativeOnly | undefined
}

export interface NativeOnly {
  /** The field of a chat. */
  readonly param: string
  /** For people. */
  readonly what: string
}

/** A chat request after decoding: role `developer` is `system`, aliases are resolved, `type: text` formats are gone. */
export interface ChatRequest {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  /** `messages` with every picture as a `data:` URL; undefined where no route needs it. */
  readonly inlined?: ReadonlyArray<Message> | undefined
  readonly isLarge?: boolean | undefined
  readonly native?: NativeRequest | undefined
  /** The same for all requests of one conversation of an organization with a model. */
  readonly conversation?: string | undefined
  /** An effort that the model lacks becomes its nearest, or none. */
  readonly effortIsHint?: boolean | undefined
  /** A model or a route that cannot search does without. */
  readonly webSearchIsHint?: boolean | undefined
  /** Requests with the same key share a cache, at hosts that take one. */
  readonly promptCacheKey?: string | undefined
  readonly promptCacheRetention?: "in_memory" | "24h" | undefined
  /** Marks that the model has no price for are not sent: of any kind, or for an hour. */
  readonly unpricedMarks?: "all" | "hour" | undefined
  readonly stream: boolean
  readonly includeUsage: boolean
  /** The charge beside the usage. */
  readonly includeCost?: boolean | undefined
  /** Clamped to the model's limit once the model is known. */
  readonly maxTokens: number
  /** The client named no cap: the default is never refused. */
  readonly maxTokensOmitted?: boolean | undefined
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  readonly stop: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Tool>
  readonly webSearch: boolean
  /** The model's limit; sent to hosts that take one. */
  readonly maxWebSearches?: number | undefined
  /** The model's, in tokens. */
  readonly contextLength?: number | undefined
  /** The names of `tools` with free text as input: their calls go to the client as calls of custom tools. */
  readonly customTools?: ReadonlySet<string> | undefined
  readonly toolChoice?: ToolChoice | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly reasoningEffort?: ReasoningEffort | undefined
  readonly responseFormat?: ResponseFormat | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  /** An integer of up to 64 bits; a bigint if the client wrote more digits than a number keeps. */
  readonly seed?: number | bigint | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** `cached` and `cacheWrite` are parts of `prompt`, `cacheWriteHour` of `cacheWrite`, `reasoning` of `completion`. */
export interface Usage {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly cacheWrite: number
  /** Written to be kept for an hour, which costs more. */
  readonly cacheWriteHour?: number | undefined
  readonly reasoning: number
  /** Searches, each at its own price. */
  readonly webSearches?: number | undefined
  /** What the provider says that it charges, for the operator's books alone; null: it says no amount. */
  readonly statedCost?: NanoUsd | null | undefined
}

/** A source of an answer's text, such as a page that a search found. */
export interface Citation {
  readonly url: string
  readonly title?: string | undefined
  /** The passage that supports the answer, as the source words it. */
  readonly quote?: string | undefined
  /** The part of `content` that rests on it, in UTF-16 units; `end` is exclusive. */
  readonly start?: number | undefined
  readonly end?: number | undefined
}

/** A part of an answer that a vendor added and the gateway cannot read. */
export interface Unread {
  readonly part: "stop_reason" | "usage" | "block"
  /** For the operator's log: the value or the type, without output. */
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
  readonly unread?: ReadonlyArray<Unread> | undefined
  /** The provider charges nothing for it, whatever tokens it counts. */
  readonly isUnbilled?: boolean | undefined
  readonly usage: Usage | undefined
  /** The host's whole answer, to a native request. */
  readonly native?: Readonly<Record<string, unknown>> | undefined
}

/** `native` is an event of the host to a native request, followed by what it says in our terms. `index` counts tool calls from 0; the last event is `finish` or `usage`, and the last `usage` counts. */
export type ChatEvent =
  | { readonly type: "content"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | {
      readonly type: "tool_call"
      readonly index: number
      readonly id?: string | undefined
      readonly name?: string | undefined
      readonly arguments: string
      readonly signature?: string | undefined
    }
  /** The host generates; shows nothing. */
  | { readonly type: "begin" }
  | { readonly type: "citation"; readonly citation: Citation }
  | { readonly type: "unread"; readonly unread: Unread }
  | {
      readonly type: "finish"
      readonly reason: FinishReason
      readonly stopSequence?: string | undefined
      /** The provider charges nothing for the answer, whatever tokens it counts. */
      readonly isUnbilled?: boolean | undefined
    }
  | {
      readonly type: "usage"
      readonly usage: Usage
      /** Counted along the way, of an answer that goes on. */
      readonly isPartial?: boolean | undefined
    }
  | {
      readonly type: "native"
      readonly event: Readonly<Record<string, unknown>>
      /** It begins output of which the stream may show nothing for minutes. */
      readonly isOutput?: boolean | undefined
    }

/** Output: after it a stream cannot move to another route. */
export const isDelta = (event: ChatEvent): boolean => {
  if (event.type === "native") return event.isOutput === true
  return "text" in event ? event.text !== "" : event.type === "tool_call"
}
