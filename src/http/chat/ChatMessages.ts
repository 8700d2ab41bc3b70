import { Schema } from "effect"
import { readCallId } from "../../domain/CallId.ts"
import type { Message, TextPart, ToolCall } from "../../domain/Chat.ts"
import { described, Filled, optional, upTo } from "../../domain/Constraints.ts"
import { isAbsent, isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { Arguments, roleProblem, textOr } from "../schema/SharedFields.ts"
import { CallId, customArguments, longestName, toolCallOf } from "./ChatTools.ts"
import {
  assistantPartReader,
  chatDetails,
  ImagePartSchema,
  invalidType,
  isImageType,
  isTextType,
  marked,
  type ReadPart,
  RefusalPartSchema,
  readCacheMark,
  readParts,
  readText,
  TextPartSchema,
  userPartReader
} from "./ContentParts.ts"
import { below, invalidAt, invalidIn, type Path, readEach, readFilled, readOptionalString } from "./FieldReaders.ts"

const CalledFunction = Schema.Struct({
  name: Filled.pipe(upTo(longestName)),
  arguments: Arguments
})
const CalledCustom = Schema.Struct({ name: Filled.pipe(upTo(longestName)), input: Schema.String })
const EarlierToolCall = Schema.Union(
  Schema.Struct({ id: CallId, type: optional(Schema.Literal("function")), function: CalledFunction }),
  Schema.Struct({
    id: CallId,
    type: optional(Schema.Literal("function")),
    function: optional(Schema.Null),
    ...CalledFunction.fields
  }),
  Schema.Struct({ id: CallId, type: Schema.Literal("custom"), custom: CalledCustom }),
  Schema.Struct({
    id: CallId,
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    ...CalledCustom.fields
  })
).annotations({ identifier: "EarlierToolCall" })

export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: optional(
    Schema.Union(Schema.String, Schema.Array(Schema.Union(TextPartSchema, RefusalPartSchema))),
    "May be left out, also without `tool_calls`."
  ),
  name: optional(Schema.String),
  refusal: optional(Schema.String),
  reasoning_content: optional(Schema.String),
  tool_calls: optional(Schema.Array(EarlierToolCall)),
  function_call: described(Schema.Null, "Not supported: send `tool_calls`."),
  ...marked
}).annotations({ identifier: "AssistantMessage" })
export const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  content: textOr(TextPartSchema),
  tool_call_id: Filled.annotations({ description: "A tool call of an earlier assistant message." }),
  ...marked
}).annotations({ identifier: "ToolMessage" })

export const SystemMessage = Schema.Struct({
  role: Schema.Literal("system", "developer"),
  content: textOr(TextPartSchema),
  name: optional(Schema.String),
  ...marked
}).annotations({ identifier: "SystemMessage" })
export const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(TextPartSchema, ImagePartSchema)),
  name: optional(Schema.String),
  ...marked
}).annotations({ identifier: "UserMessage" })

const readTextOnly: ReadPart<TextPart> = (part, path) => {
  if (isTextType(part.type)) return readText(part, path)
  return isImageType(part.type)
    ? invalidAt(path, "must be text: only a user's message may hold an image")
    : invalidType(path, part.type, "text")
}

const readAssistantPart = assistantPartReader(readTextOnly)
const readUserPart = userPartReader("one of text, image_url", chatDetails)

const readMark = <A extends object>(read: A, from: JsonObject, path: Path): A =>
  isAbsent(from.cache_control) ? read : { ...read, ...readCacheMark(from, path) }

const readContent = <A extends object>({ content }: JsonObject, path: Path, readPart: ReadPart<A>) => {
  const at = below(path, "content")
  if (isArray(content) && content.length === 0) return invalidAt(at, "must not be an empty array")
  return readParts(content, at, (part, partPath) => readMark(readPart(part, partPath), part, partPath))
}

/** The name and the arguments of a call; Cursor sends them beside the id. */
const calledIn = (call: JsonObject, path: Path): { readonly name: string; readonly text: string } => {
  if (call.type === "custom") {
    const { input, name } = isObject(call.custom) ? call.custom : call
    if (isFilled(name) && isString(input)) return { name, text: customArguments(input) }
    return invalidIn(path, "custom", "must be an object with a `name` and an `input`, a text")
  }
  if (!isAbsent(call.type) && call.type !== "function") return invalidIn(path, "type", "must be function or custom")
  const { arguments: text, name } = isObject(call.function) ? call.function : call
  if (isFilled(name) && isString(text)) return { name, text }
  return invalidIn(path, "function", "must be an object with a `name` and `arguments`, a JSON text")
}

const readToolCall = (call: JsonObject, path: Path): ToolCall => {
  const id = readFilled(call, "id", path)
  const { name, text } = calledIn(call, path)
  return toolCallOf(id, name, text, path)
}

const isEmpty = (content: unknown): boolean => isAbsent(content) || (isArray(content) && content.length === 0)

const readAssistant = (message: JsonObject, path: Path, calls: Set<string>): Message => {
  if (!isAbsent(message.function_call)) {
    return invalidIn(path, "function_call", "is not supported: send `tool_calls`")
  }
  const content = isEmpty(message.content) ? undefined : readContent(message, path, readAssistantPart)
  const refusal = readOptionalString(message, "refusal", path)
  const reasoning = readOptionalString(message, "reasoning_content", path)
  const toolCalls = isAbsent(message.tool_calls)
    ? []
    : readEach(message.tool_calls, below(path, "tool_calls"), readToolCall)
  const name = readOptionalString(message, "name", path)
  for (const call of toolCalls) calls.add(call.id)
  return {
    role: "assistant",
    content: content ?? refusal ?? null,
    name,
    reasoning_content: reasoning,
    tool_calls: toolCalls.length === 0 ? undefined : toolCalls
  }
}

const readTool = (message: JsonObject, path: Path, calls: ReadonlySet<string>): Message => {
  const { id } = readCallId(readFilled(message, "tool_call_id", path))
  if (!calls.has(id)) {
    return invalidIn(path, "tool_call_id", "must answer a tool call of an earlier assistant message")
  }
  return { role: "tool", content: readContent(message, path, readTextOnly), tool_call_id: id }
}

const readContentAndName = <A extends object>(message: JsonObject, path: Path, readPart: ReadPart<A>) => ({
  content: readContent(message, path, readPart),
  name: readOptionalString(message, "name", path)
})

const unknownRole = roleProblem(SystemMessage, UserMessage, AssistantMessage, ToolMessage)

const readRole = (message: JsonObject, path: Path, calls: Set<string>): Message => {
  switch (message.role) {
    case "user":
      return { role: "user", ...readContentAndName(message, path, readUserPart) }
    case "system":
    case "developer":
      return { role: "system", ...readContentAndName(message, path, readTextOnly) }
    case "assistant":
      return readAssistant(message, path, calls)
    case "tool":
      return readTool(message, path, calls)
    case "function":
      return invalidIn(path, "role", "cannot be function: send the result as a tool message")
    default:
      return invalidIn(path, "role", unknownRole)
  }
}

/** In order: a tool's result must answer a call made before it. */
export const readMessages = (messages: ReadonlyArray<unknown>): ReadonlyArray<Message> => {
  const calls = new Set<string>()
  return readEach(messages, "messages", (message, path) => readMark(readRole(message, path, calls), message, path))
}
