import type { ReasoningEffort } from "./Model.ts"

export interface TextPart {
  readonly type: "text"
  readonly text: string
}

export interface ImagePart {
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

export type Message =
  | { readonly role: "system"; readonly content: string | ReadonlyArray<TextPart>; readonly name?: string | undefined }
  | { readonly role: "user"; readonly content: string | ReadonlyArray<Part>; readonly name?: string | undefined }
  | {
      readonly role: "assistant"
      readonly content: string | ReadonlyArray<TextPart> | null
      readonly name?: string | undefined
      readonly reasoning_content?: string | undefined
      readonly tool_calls?: ReadonlyArray<ToolCall> | undefined
    }
  | { readonly role: "tool"; readonly content: string | ReadonlyArray<TextPart>; readonly tool_call_id: string }

export interface Tool {
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

/** A chat request after decoding: role `developer` is `system`, aliases are resolved, `type: text` formats are gone. */
export interface ChatRequest {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  /** `messages` with every picture as a `data:` URL; undefined where no route needs it. */
  readonly inlined?: ReadonlyArray<Message> | undefined
  readonly isLarge?: boolean | undefined
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Clamped to the model's limit once the model is known. */
  readonly maxTokens: number
  /** The client named no cap: the default is never refused. */
  readonly maxTokensOmitted?: boolean | undefined
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens" | undefined
  readonly stop: ReadonlyArray<string>
  readonly tools: ReadonlyArray<Tool>
  readonly webSearch: boolean
  readonly toolChoice?: ToolChoice | undefined
  readonly parallelToolCalls?: boolean | undefined
  readonly reasoningEffort?: ReasoningEffort | undefined
  readonly responseFormat?: ResponseFormat | undefined
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly seed?: number | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
}

export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter"

/** `cached` and `cacheWrite` are parts of `prompt`, `reasoning` of `completion`. */
export interface Usage {
  readonly prompt: number
  readonly completion: number
  readonly cached: number
  readonly cacheWrite: number
  readonly reasoning: number
}

export interface ChatAnswer {
  readonly content: string | null
  readonly reasoning: string | undefined
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly finish: FinishReason
  readonly usage: Usage | undefined
}

/** `index` counts tool calls from 0; the last event is `finish` or `usage`, and the last `usage` counts. */
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
  | { readonly type: "finish"; readonly reason: FinishReason }
  | { readonly type: "usage"; readonly usage: Usage }

/** Output: after it a stream cannot move to another route. */
export const isDelta = (event: ChatEvent): boolean =>
  event.type === "content" || event.type === "reasoning" || event.type === "tool_call"

export const callIdMark = "~sig~"
const longestSignature = 16_384

export interface CallId {
  readonly id: string
  readonly signature?: string
}

/** The id of a tool call on our wire, with its signature if that has at most 16384 characters. */
export const callIdOnWire = (id: string, signature: string | undefined): string =>
  signature === undefined || signature.length > longestSignature ? id : `${id}${callIdMark}${signature}`

export const readCallId = (onWire: string): CallId => {
  const at = onWire.indexOf(callIdMark)
  return at < 1 ? { id: onWire } : { id: onWire.slice(0, at), signature: onWire.slice(at + callIdMark.length) }
}
