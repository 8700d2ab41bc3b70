import { Schema } from "effect"
import { readCallId } from "../../domain/CallId.ts"
import type { Message, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import { described, Filled, optional, upTo } from "../../domain/Constraints.ts"
import { isAbsent, isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { isRefusal, type Result, readEach } from "../schema/Decoding.ts"
import { textOr } from "../schema/SharedFields.ts"
import { CallId, customArguments, longestName, toolCallOf } from "./ChatTools.ts"
import {
  ImagePartSchema,
  isImageType,
  isTextType,
  marked,
  type Path,
  RefusalPartSchema,
  readCacheMark,
  readImage,
  readText,
  TextPartSchema,
  wrongAt,
  wrongIn,
  wrongType
} from "./ContentParts.ts"

const CalledFunction = Schema.Struct({
  name: Filled.pipe(upTo(longestName)),
  arguments: Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
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

const wrong = (path: Path, problem: string) => wrongAt(path(), problem)

type ReadPart<A> = (part: JsonObject, path: Path) => Result<A>

const readTextOnly: ReadPart<TextPart> = (part, path) => {
  if (isTextType(part.type)) return readText(part, path)
  return isImageType(part.type)
    ? wrong(path, "must be text: only a user's message may hold an image")
    : wrongType(path, part.type, "text")
}

const readAssistantPart: ReadPart<TextPart> = (part, path) => {
  if (part.type !== "refusal") return readTextOnly(part, path)
  return isString(part.refusal) ? { type: "text", text: part.refusal } : wrongIn(path, "refusal", "must be a string")
}

const readAny: ReadPart<Part> = (part, path) => {
  if (isTextType(part.type)) return readText(part, path)
  if (isImageType(part.type)) return readImage(part, path, "auto, low, high")
  return wrongType(path, part.type, "one of text, image_url")
}

const readMark = <A extends object>(read: A, from: JsonObject, path: Path): Result<A> => {
  if (isAbsent(from.cache_control)) return read
  const mark = readCacheMark(from, "messages", path)
  return isRefusal(mark) ? mark : { ...read, ...mark }
}

const readContent = <A extends object>(
  content: unknown,
  path: Path,
  readPart: ReadPart<A>
): Result<string | ReadonlyArray<A>> => {
  if (isString(content)) return content
  if (!isArray(content)) return wrongIn(path, "content", "must be a string or an array of content parts")
  if (content.length === 0) return wrongIn(path, "content", "must not be an empty array")
  return readEach(content, (part, index) => {
    const at = () => `${path()}.content[${index}]`
    if (!isObject(part)) return wrong(at, "must be an object")
    const read = readPart(part, at)
    return isRefusal(read) ? read : readMark(read, part, at)
  })
}

const readOptionalText = (message: JsonObject, field: string, path: Path): Result<string | undefined> => {
  const text = message[field]
  if (isAbsent(text)) return undefined
  return isString(text) ? text : wrongIn(path, field, "must be a string")
}

/** The name and the arguments of a call; Cursor sends them beside the id. */
const calledIn = (call: JsonObject, path: Path): Result<{ readonly name: string; readonly text: string }> => {
  if (call.type === "custom") {
    const { input, name } = isObject(call.custom) ? call.custom : call
    if (isFilled(name) && isString(input)) return { name, text: customArguments(input) }
    return wrongIn(path, "custom", "must be an object with a `name` and an `input`, a text")
  }
  if (!isAbsent(call.type) && call.type !== "function") return wrongIn(path, "type", "must be function or custom")
  const { arguments: text, name } = isObject(call.function) ? call.function : call
  if (isFilled(name) && isString(text)) return { name, text }
  return wrongIn(path, "function", "must be an object with a `name` and `arguments`, a JSON text")
}

const readToolCall = (call: unknown, path: Path): Result<ToolCall> => {
  if (!isObject(call)) return wrong(path, "must be an object")
  if (!isFilled(call.id)) return wrongIn(path, "id", "is required and must be a non-empty string")
  const called = calledIn(call, path)
  if (isRefusal(called)) return called
  return (
    toolCallOf(call.id, called.name, called.text) ??
    wrong(path, `must have an \`id\` and a name of at most ${longestName} characters`)
  )
}

const readToolCalls = (calls: unknown, path: Path): Result<ReadonlyArray<ToolCall>> => {
  if (isAbsent(calls)) return []
  if (!isArray(calls)) return wrongIn(path, "tool_calls", "must be an array")
  return readEach(calls, (call, index) => readToolCall(call, () => `${path()}.tool_calls[${index}]`))
}

const isEmpty = (content: unknown): boolean => isAbsent(content) || (isArray(content) && content.length === 0)

const readAssistant = (message: JsonObject, path: Path, calls: Set<string>): Result<Message> => {
  if (!isAbsent(message.function_call)) {
    return wrongIn(path, "function_call", "is not supported: send `tool_calls`")
  }
  const content = isEmpty(message.content) ? undefined : readContent(message.content, path, readAssistantPart)
  if (isRefusal(content)) return content
  const refusal = readOptionalText(message, "refusal", path)
  if (isRefusal(refusal)) return refusal
  const reasoning = readOptionalText(message, "reasoning_content", path)
  if (isRefusal(reasoning)) return reasoning
  const toolCalls = readToolCalls(message.tool_calls, path)
  if (isRefusal(toolCalls)) return toolCalls
  const name = readOptionalText(message, "name", path)
  if (isRefusal(name)) return name
  for (const call of toolCalls) calls.add(call.id)
  return {
    role: "assistant",
    content: content ?? refusal ?? null,
    name,
    reasoning_content: reasoning,
    tool_calls: toolCalls.length === 0 ? undefined : toolCalls
  }
}

const readTool = (message: JsonObject, path: Path, calls: ReadonlySet<string>): Result<Message> => {
  if (!isFilled(message.tool_call_id)) {
    return wrongIn(path, "tool_call_id", "is required and must be a non-empty string")
  }
  const { id } = readCallId(message.tool_call_id)
  if (!calls.has(id)) {
    return wrongIn(path, "tool_call_id", "must answer a tool call of an earlier assistant message")
  }
  const content = readContent(message.content, path, readTextOnly)
  return isRefusal(content) ? content : { role: "tool", content, tool_call_id: id }
}

const readContentAndName = <A extends object>(message: JsonObject, path: Path, readPart: ReadPart<A>) => {
  const content = readContent(message.content, path, readPart)
  if (isRefusal(content)) return content
  const name = readOptionalText(message, "name", path)
  return isRefusal(name) ? name : { content, name }
}

const readRole = (message: JsonObject, path: Path, calls: Set<string>): Result<Message> => {
  switch (message.role) {
    case "user": {
      const spoken = readContentAndName(message, path, readAny)
      return isRefusal(spoken) ? spoken : { role: "user", ...spoken }
    }
    case "system":
    case "developer": {
      const spoken = readContentAndName(message, path, readTextOnly)
      return isRefusal(spoken) ? spoken : { role: "system", ...spoken }
    }
    case "assistant":
      return readAssistant(message, path, calls)
    case "tool":
      return readTool(message, path, calls)
    case "function":
      return wrongIn(path, "role", "cannot be function: send the result as a tool message")
    default:
      return wrongIn(path, "role", "must be one of system, developer, user, assistant, tool")
  }
}

const readMessage = (message: unknown, path: Path, calls: Set<string>): Result<Message> => {
  if (!isObject(message)) return wrong(path, "must be an object")
  const read = readRole(message, path, calls)
  return isRefusal(read) ? read : readMark(read, message, path)
}

/** In order: a tool's result must answer a call made before it. */
export const readMessages = (messages: ReadonlyArray<unknown>): Result<ReadonlyArray<Message>> => {
  const calls = new Set<string>()
  return readEach(messages, (message, index) => readMessage(message, () => `messages[${index}]`, calls))
}
