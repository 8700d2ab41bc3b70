import { Schema } from "effect"
import { optional } from "../client/RouteOptions.ts"

/** Which texts a wire or host takes as the name of a tool or the id of a call. */
export interface NameRule {
  /** As in a regular expression's class. */
  readonly characters: string
  /** The same for the first one; undefined: any of `characters`. */
  readonly first?: string
  /** In characters. */
  readonly shortest: number
  readonly longest: number
}

export type SchemaRoot = "any" | "object" | "properties"

/** What a wire accepts in a request: one pass, `fitRequest`, fits each request to it. Route options override it. */
export interface WireRules {
  readonly toolName: NameRule
  /** The name of the wire's own search, which no other tool may have beside it. */
  readonly searchName: string | undefined
  readonly callId: NameRule
  /** Arguments of earlier calls: a JSON text, or an object, which the encoder reads from the text. */
  readonly callArguments: "text" | "object"
  /** The root of a tool's schema: any; an object without `anyOf`, `$ref` and their like; or one that also has `properties`. */
  readonly toolRoot: SchemaRoot
  /** The same for the schema of an answer; unless any, an answer that cannot be an object is declined. */
  readonly answerRoot: SchemaRoot
  /** Whether each array in a schema must say what its items are. */
  readonly needsItems: boolean
  /** Whose rules a schema must satisfy to be sent as `strict`; `none`: the wire or host has no such field. */
  readonly strict: "openai" | "anthropic" | "none"
  /** Where system messages may stand: `anywhere`; `joined`, the same with one at the beginning; only `first`; or `apart` from the turns. */
  readonly system: "anywhere" | "joined" | "first" | "apart"
  /** The content of system, assistant and tool messages: parts; one text; or one text unless a part has a cache mark. */
  readonly content: "parts" | "text" | "marked"
  /** Whether a user's turn may be blank. */
  readonly blankUser: boolean
  /** Whether a conversation must open with a user's turn. */
  readonly opensWithUser: boolean
  /** Whether it may end with the assistant's turn, which the model then continues; `trimmed`: without white space at its end. */
  readonly prefill: "any" | "trimmed" | "none"
}

/** OpenAI's own rules, as in its Responses API. */
export const openAiRules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  searchName: undefined,
  callId: { characters: "a-zA-Z0-9_-", shortest: 1, longest: 64 },
  callArguments: "text",
  toolRoot: "properties",
  answerRoot: "properties",
  needsItems: true,
  strict: "openai",
  system: "anywhere",
  content: "parts",
  blankUser: true,
  opensWithUser: false,
  prefill: "any"
}

/** Route options that override the rules of any wire. */
export const fitOptions = {
  prefill: optional(Schema.Boolean),
  strict: optional(Schema.Boolean),
  any_schema: optional(Schema.Boolean),
  call_id_length: optional(
    Schema.Int.pipe(Schema.between(8, 40)).annotations({
      message: () => ({ message: "must be a whole number from 8 to 40", override: true })
    })
  ),
  tool_name_length: optional(
    Schema.Int.pipe(Schema.between(32, 256)).annotations({
      message: () => ({ message: "must be a whole number from 32 to 256", override: true })
    })
  )
}

type FitOptions = Schema.Struct.Type<typeof fitOptions>

const override = (rules: WireRules, options: FitOptions): WireRules => {
  const { any_schema, call_id_length: exactly, prefill, strict, tool_name_length: longest } = options
  return {
    ...rules,
    ...(longest !== undefined && { toolName: { ...rules.toolName, longest } }),
    ...(exactly !== undefined && { callId: { characters: "a-zA-Z0-9", shortest: exactly, longest: exactly } }),
    ...(any_schema === true && { toolRoot: "any", answerRoot: "any" }),
    ...(strict === false && { strict: "none" }),
    ...(prefill === false && { prefill: "none" })
  }
}

/** The rules of a wire for a route's options, of which it makes one table for each object. */
export const makeRules = <Options extends FitOptions>(
  rules: WireRules,
  overrideMore: (options: Options) => Partial<WireRules> = () => ({})
): ((options: Options) => WireRules) => {
  const known = new WeakMap<Options, WireRules>()
  return (options) => {
    const before = known.get(options)
    if (before !== undefined) return before
    const made = { ...override(rules, options), ...overrideMore(options) }
    known.set(options, made)
    return made
  }
}
