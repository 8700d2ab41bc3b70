import { Schema } from "effect"
import type { ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { Filled, matching, optional } from "../../domain/Constraints.ts"
import { isAbsent, isFilled, type JsonObject } from "../body/Guards.ts"
import { firstOfEach, messagesToolOf, readNamed, readSchema } from "../chat/ChatTools.ts"
import { invalidAt, invalidIn, type Path, readEach, readObject } from "../chat/FieldReaders.ts"
import { mustBeOneOf, oneOf, otherThan } from "../schema/SharedFields.ts"
import { cacheControlOf, type NativeShare } from "./ContentBlocks.ts"

const toolName = {
  pattern: /^[a-zA-Z0-9_-]{1,128}$/,
  problem: "is required and must be 1 to 128 letters, digits, underscores or dashes"
}

export const MessagesTool = messagesToolOf(matching(toolName.pattern)).annotations({ identifier: "MessagesTool" })
export const MessagesOtherTool = Schema.Struct({ type: otherThan("custom") }).annotations({
  identifier: "MessagesOtherTool",
  description:
    "`web_search_…` needs a model with web search. Tools that the client runs (`bash_…`, `text_editor_…`, `memory_…`, `computer_…`, `browser_…`) need a route that speaks this API; any other is passed on to such a route and left out elsewhere."
})

const ChoiceType = oneOf("auto", "any", "tool", "none")
export const MessagesToolChoice = Schema.Struct({
  type: ChoiceType,
  name: optional(Filled, "With the type `tool`: one of `tools`."),
  disable_parallel_tool_use: optional(Schema.Boolean)
}).annotations({ identifier: "MessagesToolChoice" })

/** The client runs them, and the host alone knows their schemas. */
const clientTool = /^(bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d+$/
const searchTool = /^web_search_\d+$/
/** What the host adds to a prompt for a tool that it knows, such as the schemas of a whole set. */
const perKnownTool = 8_192

interface ReadTools {
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

const readCustom = (tool: JsonObject, path: Path, share: NativeShare): Tool => {
  const named = readNamed(tool, path, toolName)
  const parameters = readSchema(tool, "input_schema", path)
  for (const key in tool) if (!translated.has(key)) share.add(tool[key])
  return { type: "function", function: { ...named, parameters }, ...cacheControlOf(tool) }
}

const shareKnown = (tool: JsonObject, type: string, share: NativeShare): void => {
  if (clientTool.test(type)) share.only ??= { param: "tools", what: `The tool \`${type}\`` }
  share.add(tool)
  share.tokens += perKnownTool
}

export const readTools = (given: unknown, share: NativeShare): ReadTools => {
  const tools: Array<Tool> = []
  const names = new Set<string>()
  let webSearch = false
  const read = (tool: JsonObject, path: Path): void => {
    if (isFilled(tool.name)) names.add(tool.name)
    if (isFilled(tool.type) && tool.type !== "custom") {
      webSearch ||= searchTool.test(tool.type)
      shareKnown(tool, tool.type, share)
    } else tools.push(readCustom(tool, path, share))
  }
  if (!isAbsent(given)) readEach(given, "tools", read)
  return { tools: firstOfEach(tools), names, webSearch }
}

interface ReadChoice {
  readonly toolChoice: ToolChoice | undefined
  readonly parallelToolCalls: boolean | undefined
}

/** A tool that is not translated cannot be chosen on other routes. */
const translateChoice = ({ name, type }: JsonObject, { names, tools }: ReadTools): ToolChoice | undefined => {
  const some = tools.length > 0
  switch (type) {
    case "auto":
      return some ? "auto" : undefined
    case "none":
      return some ? "none" : undefined
    case "any":
      if (names.size === 0) return invalidAt("tool_choice", "needs `tools`")
      return some ? "required" : undefined
    case "tool":
      if (!isFilled(name) || !names.has(name)) return invalidAt("tool_choice.name", "must name one of `tools`")
      return tools.some((tool) => tool.function.name === name) ? { type: "function", function: { name } } : undefined
    default:
      return invalidAt("tool_choice.type", mustBeOneOf(ChoiceType.literals))
  }
}

export const readChoice = (given: unknown, read: ReadTools): ReadChoice => {
  if (isAbsent(given)) return { toolChoice: undefined, parallelToolCalls: undefined }
  const choice = readObject(given, "tool_choice")
  const toolChoice = translateChoice(choice, read)
  const isSingle = choice.disable_parallel_tool_use === true && read.tools.length > 0
  return { toolChoice, parallelToolCalls: isSingle ? false : undefined }
}

export const readFormat = (given: unknown, path: string): ResponseFormat | undefined => {
  if (isAbsent(given)) return undefined
  const format = readObject(given, path)
  if (format.type !== "json_schema") return invalidIn(path, "type", "must be json_schema")
  const schema = readSchema(format, "schema", path)
  return { type: "json_schema", json_schema: { name: "response", schema, strict: true } }
}
