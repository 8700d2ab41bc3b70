import type { Redacted } from "effect"
import type { NanoUsd } from "./Money.ts"

export type Surface = "chat" | "image" | "video"
export type Capability = "tools" | "vision" | "response_format" | "web_search"
export type ReasoningEffort = "low" | "medium" | "high" | "xhigh"
export type Resolution = "1K" | "2K" | "4K"

/** Prices of one token tier, in nano-USD per million tokens. */
export interface TokenPrices {
  readonly prompt: NanoUsd
  readonly completion: NanoUsd
}

export interface ChatPricing extends TokenPrices {
  readonly cachedPrompt: NanoUsd | undefined
  readonly cacheWrite: NanoUsd | undefined
  /** Applies to the whole request once its prompt has more than `above` tokens. */
  readonly longContext: (TokenPrices & { readonly above: number }) | undefined
}

/** An upstream account: a wire format, an address and a credential. */
export interface ProviderAccount {
  /** The name that logs and "All providers failed (last: <name> 503)." show. */
  readonly name: string
  readonly adapter: string
  /** Without a trailing slash; absent for the sandbox. */
  readonly baseUrl: string | undefined
  readonly credential: Redacted.Redacted | undefined
  /** Headers the operator wants sent with every call. */
  readonly headers: Readonly<Record<string, string>>
}

/** One way to serve a model. */
export interface Route {
  /** `<model>@<provider>` plus `#2`, `#3` for further routes of the same pair; unique in a catalog. */
  readonly id: string
  readonly provider: ProviderAccount
  /** The provider's own name of the model. */
  readonly model: string
  /** Lower is tried first. */
  readonly preference: number
  /** Share of the traffic within one preference. */
  readonly weight: number
  /** Undefined: whatever the model can. */
  readonly capabilities: ReadonlySet<Capability> | undefined
  /** What the provider charges, where the operator has said. */
  readonly cost: ChatPricing | undefined
  /** Adapter options of this route, passed through untouched. */
  readonly options: Readonly<Record<string, unknown>>
}

interface ModelBase {
  readonly id: string
  /** Unix seconds. */
  readonly created: number
  /** Every route whose credential is present, in catalog order. */
  readonly routes: ReadonlyArray<Route>
}

export interface ChatModel extends ModelBase {
  readonly surface: "chat"
  readonly family: string
  readonly contextLength: number
  readonly maxOutput: number
  /** What happens to a `max_tokens` above `maxOutput`. */
  readonly maxOutputPolicy: "clamp" | "reject"
  /** Whether temperature, top_p, seed and the penalties reach the provider. */
  readonly sampling: boolean
  readonly reasoning: ReadonlyArray<ReasoningEffort> | "binary" | "none"
  readonly capabilities: ReadonlySet<Capability>
  readonly pricing: ChatPricing
  readonly official: TokenPrices | undefined
  /** Worst case of one image part, in tokens. */
  readonly imageTokens: number
  /** Worst case of what a web search adds to the prompt, in tokens. */
  readonly webSearchTokens: number
}

/** Images and videos are listed and refused by name; their own fields come with their surfaces. */
export interface MediaModel extends ModelBase {
  readonly surface: "image" | "video"
}

export type Model = ChatModel | MediaModel
