import { Schema } from "effect"
import { readCallId, unsigned } from "../../domain/CallId.ts"
import type { Message, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { isAbsent, isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { longestName, toolCallOf } from "../chat/ChatTools.ts"
import { type Path, wrongAt, wrongIn } from "../chat/ContentParts.ts"
import { isRefusal, type Result } from "../schema/Decoding.ts"
import { textOr } from "../schema/SharedFields.ts"
import {
  cacheControlOf,
  DocumentBlock,
  ImageBlock,
  NativeShare,
  OtherBlock,
  RedactedThinkingBlock,
  readBlocks,
  readPart,
  readParts,
  readTextBlock,
  readTexts,
  SearchResultBlock,
  TextBlock,
  ThinkingBlock,
  ToolReferenceBlock,
  ToolResultBlock,
  ToolUseBlock
} from "./ContentBlocks.ts"

export const UserTurn = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(
    Schema.Union(
      TextBlock,
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
    Schema.Array(Schema.Union(TextBlock, ThinkingBlock, RedactedThinkingBlock, ToolUseBlock, OtherBlock))
  )
}).annotations({ identifier: "MessagesAssistantTurn" })
export const SystemTurn = Schema.Struct({ role: Schema.Literal("system"), content: textOr(TextBlock) }).annotations({
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
): Result<{ readonly result: Message; readonly shown: ReadonlyArray<Part> }> => {
  if (!isFilled(block.tool_use_id)) return wrongIn(path, "tool_use_id", "is required and must be a non-empty string")
  const { id } = readCallId(block.tool_use_id)
  if (!calls.has(id)) return wrongIn(path, "tool_use_id", "must answer a `tool_use` of an earlier assistant message")
  const parts: Result<ReadonlyArray<Part>> = isString(block.content)
    ? [{ type: "text", text: block.content }]
    : readParts(block.content, () => `${path()}.content`, share)
  if (isRefusal(parts)) return parts
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
): Result<ReadonlyArray<Message>> => {
  if (isString(content)) return [{ role: "user", content }]
  const results: Array<Message> = []
  const parts: Array<Part> = []
  const read = readBlocks(content, path, (block, at): Result<undefined> => {
    if (block.type === "tool_result") {
      const answered = readResult(block, at, calls, share)
      if (isRefusal(answered)) return answered
      results.push(answered.result)
      parts.push(...answered.shown)
      return undefined
    }
    const own = readPart(block, at, share)
    if (isRefusal(own)) return own
    parts.push(...own)
    return undefined
  })
  if (isRefusal(read)) return read
  if (read.length === 0) return wrongAt(path(), "must not be empty")
  return parts.length === 0 ? results : [...results, { role: "user", content: parts }]
}

const readCall = (block: JsonObject, path: Path): Result<ToolCall> => {
  if (!isFilled(block.id)) return wrongIn(path, "id", "is required and must be a non-empty string")
  if (!isFilled(block.name)) return wrongIn(path, "name", "is required and must be a non-empty string")
  if (!isObject(block.input)) return wrongIn(path, "input", "is required and must be an object")
  return (
    toolCallOf(block.id, block.name, stringify(block.input)) ??
    wrongAt(path(), `must have an \`id\` and a name of at most ${longestName} characters`)
  )
}

/** A signature holds the reasoning itself, which the host may count. */
const readThinking = ({ signature, thinking }: JsonObject, path: Path, share: NativeShare): Result<string> => {
  if (!isString(thinking)) return wrongIn(path, "thinking", "must be a string")
  if (isString(signature) && signature !== unsigned) share.tokens += signature.length
  return thinking
}

/** Blocks that hosts write beside text and calls; other routes do not need them. */
const hostBlock = /^(?:redacted_thinking|server_tool_use|mcp_tool_use|[a-z_]+_tool_result)$/
const userBlocks: ReadonlySet<string> = new Set([
  "container_upload",
  "document",
  "image",
  "search_result",
  "tool_reference",
  "tool_result"
])

const readOther = (block: JsonObject, path: Path, share: NativeShare): Result<undefined> => {
  const { type } = block
  if (!isFilled(type)) return wrongIn(path, "type", "is required and must be a string")
  if (userBlocks.has(type)) return wrongIn(path, "type", "must not be of a user's block")
  share.addBlock(block)
  if (!hostBlock.test(type)) share.leaveToNative(type)
  return undefined
}

const readAssistant = (
  content: unknown,
  path: Path,
  calls: Set<string>,
  share: NativeShare
): Result<ReadonlyArray<Message>> => {
  if (isString(content)) return [{ role: "assistant", content }]
  const texts: Array<TextPart> = []
  const toolCalls: Array<ToolCall> = []
  let reasoning = ""
  let mark: ReturnType<typeof cacheControlOf> = {}
  const take = (block: JsonObject, at: Path): Result<TextPart | ToolCall | undefined> => {
    switch (block.type) {
      case "text":
      case "input_text":
      case "output_text": {
        const text = readTextBlock(block, at)
        if (!isRefusal(text)) texts.push(text)
        return text
      }
      case "compaction":
        if (isFilled(block.content)) texts.push({ type: "text", text: block.content, ...cacheControlOf(block) })
        return undefined
      case "tool_use": {
        const call = readCall(block, at)
        if (isRefusal(call)) return call
        toolCalls.push(call)
        calls.add(call.id)
        mark = { ...mark, ...cacheControlOf(block) }
        return call
      }
      case "thinking": {
        const thinking = readThinking(block, at, share)
        if (isRefusal(thinking)) return thinking
        reasoning += thinking
        return undefined
      }
      default:
        return readOther(block, at, share)
    }
  }
  const read = readBlocks(content, path, take)
  if (isRefusal(read)) return read
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

const readTurn = (
  turn: unknown,
  index: number,
  calls: Set<string>,
  share: NativeShare
): Result<ReadonlyArray<Message>> => {
  const path = () => `messages[${index}]`
  const inContent = () => `messages[${index}].content`
  if (!isObject(turn)) return wrongAt(path(), "must be an object")
  switch (turn.role) {
    case "user":
      return readUser(turn.content, inContent, calls, share)
    case "assistant":
      return readAssistant(turn.content, inContent, calls, share)
    case "system": {
      const content = readTexts(turn.content, inContent)
      return isRefusal(content) ? content : [{ role: "system", content }]
    }
    default:
      return wrongIn(path, "role", "must be one of user, assistant, system")
  }
}

/** In order: a tool's result must answer a call made before it. */
export const readConversation = (turns: ReadonlyArray<unknown>): Result<Conversation> => {
  const calls = new Set<string>()
  const share = new NativeShare()
  const messages: Array<Message> = []
  for (const [index, turn] of turns.entries()) {
    const read = readTurn(turn, index, calls, share)
    if (isRefusal(read)) return read
    messages.push(...read)
  }
  return { messages, share }
}

/** The system prompt as its message; none where it is empty. */
export const readSystem = (system: unknown): Result<ReadonlyArray<Message>> => {
  if (isAbsent(system) || system === "" || (isArray(system) && system.length === 0)) return []
  const content = readTexts(system, () => "system")
  return isRefusal(content) ? content : [{ role: "system", content }]
}
