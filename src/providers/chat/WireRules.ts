/** Which texts a wire or host takes as the name of a tool or the id of a call. */
export interface NameRule {
  /** Of the whole text. */
  readonly pattern: RegExp
  /** In characters. */
  readonly longest: number
}

/** What a wire accepts in a request: a request is fitted to it by one pass, `fitRequest`. Route options override it. */
export interface WireRules {
  readonly toolName: NameRule
  readonly callId: NameRule
  /** The root of a tool's or an answer's schema: any, or an object with `properties` and without `anyOf`, `$ref` and their like. */
  readonly schemaRoot: "any" | "object"
  /** What `strict` needs: nothing, the rules of OpenAI, or those of Anthropic; `none`: the wire has no such field. */
  readonly strict: "any" | "openai" | "anthropic" | "none"
  /** Arguments of earlier calls: any text, or a JSON object. */
  readonly callArguments: "text" | "object"
  /** Where system messages may stand: anywhere, at the beginning as one message, or apart from the turns. */
  readonly system: "anywhere" | "first" | "apart"
  /** The content of system, assistant and tool messages: parts, or one text where no part is marked for a cache. */
  readonly content: "parts" | "text"
  /** Whether a conversation may end with the assistant's turn, which the model then goes on with. */
  readonly prefill: boolean
  /** Whether a conversation must open with a user's turn. */
  readonly opensWithUser: boolean
  /** Whether an assistant's turn may be empty or blank. */
  readonly emptyTurns: boolean
}
