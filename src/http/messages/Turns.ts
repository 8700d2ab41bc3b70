import { Schema } from "effect"
import { readCallId, unsigned } from "../../domain/CallId.ts"
import type { Message, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { isAbsent, isArray, isFilled, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { toolCallOf } from "../chat/ChatTools.ts"
import { TextPartSchema } from "../chat/ContentParts.ts"
import {
  below,
  invalidAt,
  invalidIn,
  type Path,
  readEach,
  readFilled,
  readObjectIn,
  readString,
  readWord
} from "../chat/FieldReaders.ts"
import { roleProblem, textOr } from "../schema/SharedFields.ts"
import {
  cacheControlOf,
  DocumentBlock,
  ImageBlock,
  NativeShare,
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
  readonly share: NativeShare
}

const isText = (part: Part): part is TextPart => part.type === "text"

/** Other wires have no mark for a result that is an error, and none for pictures in a result. */
const readResult = (
  block: JsonObject,
  path: Path,
  calls: ReadonlySet<string>,
  share: NativeShare
): { readonly result: Message; readonly shown: ReadonlyArray<Part> } => {
  const { id } = readCallId(readFilled(block, "tool_use_id", path))
  if (!calls.has(id)) return invalidIn(path, "tool_use_id", "must answer a `tool_use` of an earlier assistant message")
  const parts: ReadonlyArray<Part> = isString(block.content)
    ? [{ type: "text", text: block.content }]
    : readBlockParts(block.content, below(path, "content"), share)
  const texts = parts.filter(isText)
  const content = block.is_error === true ? [{ type: "text" as const, text: "Error:" }, ...texts] : texts
  const [only, ...others] = content
  return {
    result: {
      role: "tool",
      tool_call_id: id,
      content: only === undefined ? "" : others.length === 0 ? only.text : content,
      ...cacheControlOf(block)
    },
    shown: parts.filter((part) => !isText(part))
  }
}

const readUser = (
  content: unknown,
  path: Path,
  calls: ReadonlySet<string>,
  share: NativeShare
): ReadonlyArray<Message> => {
  if (isString(content)) return [{ role: "user", content }]
  const results: Array<Message> = []
  const parts: Array<Part> = []
  const blocks = readBlocks(content, path, (block, at) => {
    if (block.type !== "tool_result") return parts.push(...readBlockPart(block, at, share))
    const { result, shown } = readResult(block, at, calls, share)
    results.push(result)
    return parts.push(...shown)
  })
  if (blocks.length === 0) return invalidAt(path, "must not be empty")
  return parts.length === 0 ? results : [...results, { role: "user", content: parts }]
}

const readCall = (block: JsonObject, path: Path): ToolCall => {
  const id = readFilled(block, "id", path)
  const name = readFilled(block, "name", path)
  return toolCallOf(id, name, stringify(readObjectIn(block, "input", path)), path)
}

/** A signature holds the reasoning itself, which the host may count. */
const readThinking = (block: JsonObject, path: Path, share: NativeShare): string => {
  const thinking = readString(block, "thinking", path)
  const { signature } = block
  if (isString(signature) && signature !== unsigned) share.tokens += signature.length
  return thinking
}

/** Blocks that hosts write beside text and calls; other routes do not need them. */
const hostBlock = /^(?:redacted_thinking|server_tool_use|mcp_tool_use|[a-z_]+_tool_result)$/
const isUserBlock = isOneOf(...userBlockTypes)

const readOther = (block: JsonObject, path: Path, share: NativeShare): void => {
  const type = readWord(block, "type", path)
  if (isUserBlock(type)) return invalidIn(path, "type", "must not be of a user's block")
  share.addBlock(block)
  if (!hostBlock.test(type)) share.leaveToNative(type)
}

const readAssistant = (
  content: unknown,
  path: Path,
  calls: Set<string>,
  share: NativeShare
): ReadonlyArray<Message> => {
  if (isString(content)) return [{ role: "assistant", content }]
  const texts: Array<TextPart> = []
  const toolCalls: Array<ToolCall> = []
  let reasoning = ""
  let mark: ReturnType<typeof cacheControlOf> = {}
  readBlocks(content, path, (block, at) => {
    switch (block.type) {
      case "text":
      case "input_text":
      case "output_text":
        texts.push(readTextBlock(block, at))
        break
      case "compaction":
        if (isFilled(block.content)) texts.push({ type: "text", text: block.content, ...cacheControlOf(block) })
        break
      case "tool_use": {
        const call = readCall(block, at)
        toolCalls.push(call)
        calls.add(call.id)
        mark = { ...mark, ...cacheControlOf(block) }
        break
      }
      case "thinking":
        reasoning += readThinking(block, at, share)
        break
      default:
        readOther(block, at, share)
    }
  })
  if (texts.length === 0 && toolCalls.length === 0 && reasoning === "") return []
  return [
    {
      role: "assistant",
      content: texts.length === 0 ? null : texts,
      ...(reasoning === "" ? undefined : { reasoning_content: reasoning }),
      ...(toolCalls.length === 0 ? undefined : { tool_calls: toolCalls }),
      ...mark
    }
  ]
}

const unknownRole = roleProblem(UserTurn, AssistantTurn, SystemTurn)

const readTurn = (turn: JsonObject, path: Path, calls: Set<string>, share: NativeShare): ReadonlyArray<Message> => {
  const inContent = below(path, "content")
  switch (turn.role) {
    case "user":
      return readUser(turn.content, inContent, calls, share)
    case "assistant":
      return readAssistant(turn.content, inContent, calls, share)
    case "system":
      return [{ role: "system", content: readTexts(turn.content, inContent) }]
    default:
      return invalidIn(path, "role", unknownRole)
  }
}

/** In order: a tool's result must answer a call made before it. */
export const readConversation = (turns: ReadonlyArray<unknown>): Conversation => {
  const calls = new Set<string>()
  const share = new NativeShare()
  const messages: Array<Message> = []
  readEach(turns, "messages", (turn, path) => {
    messages.push(...readTurn(turn, path, calls, share))
  })
  return { messages, share }
}

/** The system prompt as its message; none where it is empty. */
export const readSystem = (system: unknown): ReadonlyArray<Message> => {
  if (isAbsent(system) || system === "" || (isArray(system) && system.length === 0)) return []
  return [{ role: "system", content: readTexts(system, "system") }]
}
