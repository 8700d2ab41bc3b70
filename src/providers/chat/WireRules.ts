import { Schema } from "effect"
import { optional } from "../client/RouteOptions.ts"

/** The syntax of tool names or call ids that a wire format accepts. */
export interface NameRule {
  /** Allowed characters, written as in a regular expression's class. */
  readonly characters: string
  /** Allowed first characters. Undefined allows any of `characters`. */
  readonly first?: string
  readonly minLength: number
  readonly maxLength: number
}

export type SchemaRoot = "any" | "object" | "properties"

/** What a wire format accepts in a request. `fitRequest` changes requests to match. Route options override the rules. */
export interface WireRules {
  readonly toolName: NameRule
  /** The name of the wire format's own search tool, which no other tool may have. */
  readonly searchName: string | undefined
  readonly callId: NameRule
  /** The form of the arguments of earlier calls: a JSON text or an object. */
  readonly callArguments: "text" | "object"
  /**
   * What the root of a tool's schema must be. `object`: has `type: object`, and no keyword such as `anyOf` or `$ref`.
   * `properties`: has `properties` as well.
   */
  readonly toolRoot: SchemaRoot
  /** The same for the answer's schema. Unless it is `any`, the route declines answer schemas that allow no object. */
  readonly answerRoot: SchemaRoot
  /** Whether each array in a schema must have `items`. */
  readonly requiresItems: boolean
  /** The vendor whose rules a `strict` schema must satisfy. `none`: the wire format or provider has no field `strict`. */
  readonly strict: "openai" | "anthropic" | "none"
  /**
   * Where system messages may stand. `joined`: leading ones are merged into one; later ones stay. `first`: the same, but
   * later ones become user turns. `separate`: outside the turns.
   */
  readonly system: "anywhere" | "joined" | "first" | "separate"
  /**
   * The content of system, assistant and tool messages. `breakpoints`: one text, or parts if one of them has a cache
   * breakpoint.
   */
  readonly content: "parts" | "text" | "breakpoints"
  readonly acceptsBlankUser: boolean
  readonly requiresUserFirst: boolean
  /** Whether the last turn may be the assistant's, for the model to continue. `trimmed`: yes, without trailing white space. */
  readonly prefill: "any" | "trimmed" | "none"
}

/** OpenAI's own rules, as in its Responses API. */
export const openAiRules: WireRules = {
  toolName: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
  searchName: undefined,
  callId: { characters: "a-zA-Z0-9_-", minLength: 1, maxLength: 64 },
  callArguments: "text",
  toolRoot: "properties",
  answerRoot: "properties",
  requiresItems: true,
  strict: "openai",
  system: "anywhere",
  content: "parts",
  acceptsBlankUser: true,
  requiresUserFirst: false,
  prefill: "any"
}

/** Route options that override the rules of any wire format. */
export const wireRuleOptions = {
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

type WireRuleOptions = Schema.Struct.Type<typeof wireRuleOptions>

const overrideRules = (rules: WireRules, options: WireRuleOptions): WireRules => {
  const { any_schema, call_id_length: callIdLength, prefill, strict, tool_name_length: maxLength } = options
  return {
    ...rules,
    ...(maxLength !== undefined && { toolName: { ...rules.toolName, maxLength } }),
    ...(callIdLength !== undefined && {
      callId: { characters: "a-zA-Z0-9", minLength: callIdLength, maxLength: callIdLength }
    }),
    ...(any_schema === true && { toolRoot: "any", answerRoot: "any" }),
    ...(strict === false && { strict: "none" }),
    ...(prefill === false && { prefill: "none" })
  }
}

/** Returns the rules of a wire format for a route's options, computed once per options object. */
export const makeRules = <Options extends WireRuleOptions>(
  rules: WireRules,
  providerOverrides: (options: Options) => Partial<WireRules> = () => ({})
): ((options: Options) => WireRules) => {
  const rulesByOptions = new WeakMap<Options, WireRules>()
  return (options) => {
    const cachedRules = rulesByOptions.get(options)
    if (cachedRules !== undefined) return cachedRules
    const routeRules = { ...overrideRules(rules, options), ...providerOverrides(options) }
    rulesByOptions.set(options, routeRules)
    return routeRules
  }
}
