import { Schema } from "effect"
import type { ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { Filled, matching, optional } from "../../domain/Constraints.ts"
import { nestsWithin } from "../../domain/Json.ts"
import { isAbsent, isArray, isBoolean, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { firstOfEach, maxLevels } from "../chat/ChatTools.ts"
import { wrongAt } from "../chat/ContentParts.ts"
import { isRefusal, type Result } from "../schema/Decoding.ts"
import { JsonSchema, otherThan } from "../schema/SharedFields.ts"
import { cacheControlOf, mark, type NativeShare } from "./ContentBlocks.ts"

export const MessagesTool = Schema.Struct({
  type: optional(Schema.Literal("custom")),
  name: matching(/^[a-zA-Z0-9_-]{1,128}$/),
  description: optional(Schema.String),
  input_schema: JsonSchema,
  strict: optional(Schema.Boolean),
  ...mark
}).annotations({ identifier: "MessagesTool" })
export const MessagesOtherTool = Schema.Struct({ type: otherThan("custom") }).annotations({
  identifier: "MessagesOtherTool",
  description:
    "`web_search_…` needs a model with web search. Tools that the client runs (`bash_…`, `text_editor_…`, `memory_…`, `computer_…`, `browser_…`) need a route that speaks this API; any other is passed on to such a route and left out elsewhere."
})

export const MessagesToolChoice = Schema.Struct({
  type: Schema.Literal("auto", "any", "none", "tool"),
  name: optional(Filled, "With the type `tool`: one of `tools`."),
  disable_parallel_tool_use: optional(Schema.Boolean)
}).annotations({ identifier: "MessagesToolChoice" })

const namePattern = /^[a-zA-Z0-9_-]{1,128}$/
/** The client runs them, and the host alone knows their schemas. */
const clientTool = /^(bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d+$/
const searchTool = /^web_search_\d+$/
/** What the host adds to a prompt for a tool that it knows, such as the schemas of a whole set. */
const perKnownTool = 8_192

export interface ReadTools {
  readonly tools: ReadonlyArray<Tool>
  readonly names: ReadonlySet<string>
  readonly webSearch: boolean
}

const translated: ReadonlySet<string> = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "strict",
  "cache_control"
])

const readCustom = (tool: JsonObject, path: string, share: NativeShare): Result<Tool> => {
  const { description, input_schema: schema, name, strict } = tool
  if (!isString(name) || !namePattern.test(name)) {
    return wrongAt(`${path}.name`, "is required and must be 1 to 128 letters, digits, underscores or dashes")
  }
  if (!isAbsent(description) && !isString(description)) return wrongAt(`${path}.description`, "must be a string")
  if (!isAbsent(strict) && !isBoolean(strict)) return wrongAt(`${path}.strict`, "must be a boolean")
  if (!isObject(schema)) return wrongAt(`${path}.input_schema`, "is required and must be an object")
  if (!nestsWithin(maxLevels, schema)) {
    return wrongAt(`${path}.input_schema`, `must not nest more than ${maxLevels} levels deep`)
  }
  for (const key in tool) if (!translated.has(key)) share.add(tool[key])
  return {
    type: "function",
    function: {
      name,
      ...(isAbsent(description) ? undefined : { description }),
      parameters: schema,
      ...(isAbsent(strict) ? undefined : { strict })
    },
    ...cacheControlOf(tool)
  }
}

const shareKnown = (tool: JsonObject, type: string, share: NativeShare): void => {
  if (clientTool.test(type)) share.only ??= { param: "tools", what: `The tool \`${type}\`` }
  share.add(tool)
  share.tokens += perKnownTool
}

export const readTools = (given: unknown, share: NativeShare): Result<ReadTools> => {
  const tools: Array<Tool> = []
  const names = new Set<string>()
  let webSearch = false
  if (isAbsent(given)) return { tools, names, webSearch }
  if (!isArray(given)) return wrongAt("tools", "must be an array")
  for (const [index, tool] of given.entries()) {
    const path = `tools[${index}]`
    if (!isObject(tool)) return wrongAt(path, "must be an object")
    if (isFilled(tool.name)) names.add(tool.name)
    if (isFilled(tool.type) && tool.type !== "custom") {
      webSearch ||= searchTool.test(tool.type)
      shareKnown(tool, tool.type, share)
      continue
    }
    const custom = readCustom(tool, path, share)
    if (isRefusal(custom)) return custom
    tools.push(custom)
  }
  return { tools: firstOfEach(tools), names, webSearch }
}

interface ReadChoice {
  readonly toolChoice: ToolChoice | undefined
  readonly parallelToolCalls: boolean | undefined
}

/** A tool that is not translated cannot be chosen on other routes. */
const translateChoice = ({ name, type }: JsonObject, { names, tools }: ReadTools): Result<ToolChoice | undefined> => {
  const some = tools.length > 0
  switch (type) {
    case "auto":
      return some ? "auto" : undefined
    case "none":
      return some ? "none" : undefined
    case "any":
      if (names.size === 0) return wrongAt("tool_choice", "needs `tools`")
      return some ? "required" : undefined
    case "tool":
      if (!isFilled(name) || !names.has(name)) return wrongAt("tool_choice.name", "must name one of `tools`")
      return tools.some((tool) => tool.function.name === name) ? { type: "function", function: { name } } : undefined
    default:
      return wrongAt("tool_choice.type", "must be one of auto, any, tool, none")
  }
}

export const readChoice = (choice: unknown, read: ReadTools): Result<ReadChoice> => {
  if (isAbsent(choice)) return { toolChoice: undefined, parallelToolCalls: undefined }
  if (!isObject(choice)) return wrongAt("tool_choice", "must be an object")
  const toolChoice = translateChoice(choice, read)
  if (isRefusal(toolChoice)) return toolChoice
  const isSingle = choice.disable_parallel_tool_use === true && read.tools.length > 0
  return { toolChoice, parallelToolCalls: isSingle ? false : undefined }
}

export const readFormat = (format: unknown, path: string): Result<ResponseFormat | undefined> => {
  if (isAbsent(format)) return undefined
  if (!isObject(format)) return wrongAt(path, "must be an object")
  if (format.type !== "json_schema") return wrongAt(`${path}.type`, "must be json_schema")
  if (!isObject(format.schema)) return wrongAt(`${path}.schema`, "is required and must be an object")
  if (!nestsWithin(maxLevels, format.schema)) {
    return wrongAt(`${path}.schema`, `must not nest more than ${maxLevels} levels deep`)
  }
  return { type: "json_schema", json_schema: { name: "response", schema: format.schema, strict: true } }
}
