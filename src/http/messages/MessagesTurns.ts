import { Schema } from "effect"
import { type Message, type Part, readCallId, type TextPart, type ToolCall, unsignedMark } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import {
  fieldPath,
  invalidAt,
  invalidIn,
  isAbsent,
  isArray,
  isNonEmptyString,
  isOneOf,
  isString,
  type JsonObject,
  type Path,
  readEach,
  readNonEmptyString,
  readObjectIn,
  readRequiredString,
  readString
} from "../body/Guards.ts"
import { makeToolCall } from "../chat/ChatTools.ts"
import { TextPartSchema } from "../chat/ContentParts.ts"
import { roleProblem, textOr } from "../schema/SharedFields.ts"
import {
  cacheControlOf,
  DocumentBlock,
  ImageBlock,
  NativeContent,
  OtherBlock,
  RedactedThinkingBlock,
  readBlockPart,
  readBlockParts,
  readBlocks,
  readTextBlock,
  readTexts,
  SearchResultBlock,
  ThinkingBlock,
  ToolReferenceBlock,
  ToolResultBlock,
  ToolUseBlock,
  userBlockTypes
} from "./ContentBlocks.ts"

export const UserTurn = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(
    Schema.Union(
      TextPartSchema,
      ImageBlock,
      DocumentBlock,
      SearchResultBlock,
      ToolResultBlock,
      ToolReferenceBlock,
      OtherBlock
    )
  )
}).annotations({ identifier: "MessagesUserTurn" })
export const AssistantTurn = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.Union(
    Schema.String,
    Schema.Array(Schema.Union(TextPartSchema, ThinkingBlock, RedactedThinkingBlock, ToolUseBlock, OtherBlock))
  )
}).annotations({ identifier: "MessagesAssistantTurn" })
export const SystemTurn = Schema.Struct({
  role: Schema.Literal("system"),
  content: textOr(TextPartSchema)
}).annotations({
  identifier: "MessagesSystemTurn"
})

interface Conversation {
  readonly messages: ReadonlyArray<Message>
  readonly native: NativeContent
}

const isText = (part: Part): part is TextPart => part.type === "text"

/**
 * Reads a tool result. An error is marked in its text, and images are separate, because tool messages of other APIs have no
 * error flag and no images.
 */
const readResult = (
  block: JsonObject,
  path: Path,
  calls: ReadonlySet<string>,
  native: NativeContent
): { readonly result: Message; readonly images: ReadonlyArray<Part> } => {
  const { id } = readCallId(readNonEmptyString(block, "tool_use_id", path))
  if (!calls.has(id))
    return invalidIn(path, "tool_use_id", "must match a `tool_use` block in an earlier assistant message")
  const parts: ReadonlyArray<Part> = isString(block.content)
    ? [{ type: "text", text: block.content }]
    : readBlockParts(block.content, fieldPath(path, "content"), native)
  const texts = parts.filter(isText)
  const content = block.is_error === true ? [{ type: "text" as const, text: "Error:" }, ...texts] : texts
  const [first, ...rest] = content
  return {
    result: {
      role: "tool",
      tool_call_id: id,
      content: first === undefined ? "" : rest.length === 0 ? first.text : content,
      ...cacheControlOf(block)
    },
    images: parts.filter((part) => !isText(part))
  }
}

const readUser = (
  content: unknown,
  path: Path,
  calls: ReadonlySet<string>,
  native: NativeContent
): ReadonlyArray<Message> => {
  if (isString(content)) return [{ role: "user", content }]
  const results: Array<Message> = []
  const parts: Array<Part> = []
  const blocks = readBlocks(content, path, (block, at) => {
    if (block.type !== "tool_result") return parts.push(...readBlockPart(block, at, native))
    const { images, result } = readResult(block, at, calls, native)
    results.push(result)
    return parts.push(...images)
  })
  if (blocks.length === 0) return invalidAt(path, "must not be empty")
  return parts.length === 0 ? results : [...results, { role: "user", content: parts }]
}

const readCall = (block: JsonObject, path: Path): ToolCall => {
  const id = readNonEmptyString(block, "id", path)
  const name = readNonEmptyString(block, "name", path)
  return makeToolCall(id, name, stringify(readObjectIn(block, "input", path)), path)
}

/** Reads a thinking block. Its signature counts as tokens, because it contains encrypted reasoning that may be billed. */
const readThinking = (block: JsonObject, path: Path, native: NativeContent): string => {
  const thinking = readString(block, "thinking", path)
  const { signature } = block
  if (isString(signature) && signature !== unsignedMark) native.tokens += signature.length
  return thinking
}

/** Blocks that providers write in addition to text and calls. Other routes do not need them. */
const providerBlock = /^(?:redacted_thinking|server_tool_use|mcp_tool_use|[a-z_]+_tool_result)$/
const isUserBlock = isOneOf(...userBlockTypes)

const readOther = (block: JsonObject, path: Path, native: NativeContent): void => {
  const type = readRequiredString(block, "type", path)
  if (isUserBlock(type)) return invalidIn(path, "type", "must not be the type of a user's block")
  native.addBlock(block)
  if (!providerBlock.test(type)) native.requireNative(type)
}

const readAssistant = (
  content: unknown,
  path: Path,
  calls: Set<string>,
  native: NativeContent
): ReadonlyArray<Message> => {
  if (isString(content)) return [{ role: "assistant", content }]
  const texts: Array<TextPart> = []
  const toolCalls: Array<ToolCall> = []
  let reasoning = ""
  let cacheMark: ReturnType<typeof cacheControlOf> = {}
  readBlocks(content, path, (block, at) => {
    switch (block.type) {
      case "text":
      case "input_text":
      case "output_text":
        texts.push(readTextBlock(block, at))
        break
      case "compaction":
        if (isNonEmptyString(block.content)) texts.push({ type: "text", text: block.content, ...cacheControlOf(block) })
        break
      case "tool_use": {
        const call = readCall(block, at)
        toolCalls.push(call)
        calls.add(call.id)
        cacheMark = { ...cacheMark, ...cacheControlOf(block) }
        break
      }
      case "thinking":
        reasoning += readThinking(block, at, native)
        break
      default:
        readOther(block, at, native)
    }
  })
  if (texts.length === 0 && toolCalls.length === 0 && reasoning === "") return []
  return [
    {
      role: "assistant",
      content: texts.length === 0 ? null : texts,
      ...(reasoning === "" ? undefined : { reasoning_content: reasoning }),
      ...(toolCalls.length === 0 ? undefined : { tool_calls: toolCalls }),
      ...cacheMark
    }
  ]
}

const unknownRole = roleProblem(UserTurn, AssistantTurn, SystemTurn)

const readTurn = (turn: JsonObject, path: Path, calls: Set<string>, native: NativeContent): ReadonlyArray<Message> => {
  const contentPath = fieldPath(path, "content")
  switch (turn.role) {
    case "user":
      return readUser(turn.content, contentPath, calls, native)
    case "assistant":
      return readAssistant(turn.content, contentPath, calls, native)
    case "system":
      return [{ role: "system", content: readTexts(turn.content, contentPath) }]
    default:
      return invalidIn(path, "role", unknownRole)
  }
}

/** Reads turns in order, because a tool result must match an earlier call. */
export const readConversation = (turns: ReadonlyArray<unknown>): Conversation => {
  const calls = new Set<string>()
  const native = new NativeContent()
  const messages: Array<Message> = []
  readEach(turns, "messages", (turn, path) => {
    messages.push(...readTurn(turn, path, calls, native))
  })
  return { messages, native }
}

/** Returns the system prompt as a message, or nothing if it is empty. */
export const readSystem = (system: unknown): ReadonlyArray<Message> => {
  if (isAbsent(system) || system === "" || (isArray(system) && system.length === 0)) return []
  return [{ role: "system", content: readTexts(system, "system") }]
}
