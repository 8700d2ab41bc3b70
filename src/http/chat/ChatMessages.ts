import { Schema } from "effect"
import { type Message, readCallId, type TextPart, type ToolCall } from "../../domain/Chat.ts"
import { describedField, NonEmptyString, optional, upTo } from "../../domain/Constraints.ts"
import {
  fieldPath,
  invalidAt,
  invalidIn,
  isAbsent,
  isArray,
  isNonEmptyString,
  isObject,
  isString,
  type JsonObject,
  type Path,
  readEach,
  readNonEmptyString,
  readOptionalString
} from "../body/Guards.ts"
import { Arguments, roleProblem, textOr } from "../schema/SharedFields.ts"
import { CallId, encodeCustomArguments, makeToolCall, maxNameLength } from "./ChatTools.ts"
import {
  cacheMarkField,
  chatDetails,
  ImagePartSchema,
  invalidType,
  isImageType,
  isTextType,
  makeAssistantPartReader,
  makeUserPartReader,
  type ReadPart,
  RefusalPartSchema,
  readCacheMark,
  readParts,
  readText,
  TextPartSchema
} from "./ContentParts.ts"

const FunctionOfCall = Schema.Struct({
  name: NonEmptyString.pipe(upTo(maxNameLength)),
  arguments: Arguments
})
const CustomToolOfCall = Schema.Struct({ name: NonEmptyString.pipe(upTo(maxNameLength)), input: Schema.String })
const EarlierToolCall = Schema.Union(
  Schema.Struct({ id: CallId, type: optional(Schema.Literal("function")), function: FunctionOfCall }),
  Schema.Struct({
    id: CallId,
    type: optional(Schema.Literal("function")),
    function: optional(Schema.Null),
    ...FunctionOfCall.fields
  }),
  Schema.Struct({ id: CallId, type: Schema.Literal("custom"), custom: CustomToolOfCall }),
  Schema.Struct({
    id: CallId,
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    ...CustomToolOfCall.fields
  })
).annotations({ identifier: "EarlierToolCall" })

export const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: optional(
    Schema.Union(Schema.String, Schema.Array(Schema.Union(TextPartSchema, RefusalPartSchema))),
    "Optional, also without `tool_calls`."
  ),
  name: optional(Schema.String),
  refusal: optional(Schema.String),
  reasoning_content: optional(Schema.String),
  tool_calls: optional(Schema.Array(EarlierToolCall)),
  function_call: describedField(Schema.Null, "Not supported: send `tool_calls`."),
  ...cacheMarkField
}).annotations({ identifier: "AssistantMessage" })
export const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  content: textOr(TextPartSchema),
  tool_call_id: NonEmptyString.annotations({ description: "The id of a tool call in an earlier assistant message." }),
  ...cacheMarkField
}).annotations({ identifier: "ToolMessage" })

export const SystemMessage = Schema.Struct({
  role: Schema.Literal("system", "developer"),
  content: textOr(TextPartSchema),
  name: optional(Schema.String),
  ...cacheMarkField
}).annotations({ identifier: "SystemMessage" })
export const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(TextPartSchema, ImagePartSchema)),
  name: optional(Schema.String),
  ...cacheMarkField
}).annotations({ identifier: "UserMessage" })

const readTextOnly: ReadPart<TextPart> = (part, path) => {
  if (isTextType(part.type)) return readText(part, path)
  return isImageType(part.type)
    ? invalidAt(path, "must be text: only user messages may contain images")
    : invalidType(path, part.type, "text")
}

const readAssistantPart = makeAssistantPartReader(readTextOnly)
const readUserPart = makeUserPartReader("one of text, image_url", chatDetails)

const addCacheMark = <A extends object>(target: A, from: JsonObject, path: Path): A =>
  isAbsent(from.cache_control) ? target : { ...target, ...readCacheMark(from, path) }

const readContent = <A extends object>({ content }: JsonObject, path: Path, readPart: ReadPart<A>) => {
  const contentPath = fieldPath(path, "content")
  if (isArray(content) && content.length === 0) return invalidAt(contentPath, "must not be an empty array")
  return readParts(content, contentPath, (part, partPath) => addCacheMark(readPart(part, partPath), part, partPath))
}

/** Reads the name and arguments of a call, nested in `function` or `custom` or, as Cursor sends them, next to the id. */
const readNameAndArguments = (call: JsonObject, path: Path): { readonly name: string; readonly text: string } => {
  if (call.type === "custom") {
    const { input, name } = isObject(call.custom) ? call.custom : call
    if (isNonEmptyString(name) && isString(input)) return { name, text: encodeCustomArguments(input) }
    return invalidIn(path, "custom", "must be an object with a `name` and an `input` string")
  }
  if (!isAbsent(call.type) && call.type !== "function") return invalidIn(path, "type", "must be function or custom")
  const { arguments: text, name } = isObject(call.function) ? call.function : call
  if (isNonEmptyString(name) && isString(text)) return { name, text }
  return invalidIn(path, "function", "must be an object with a `name` and an `arguments` string of JSON")
}

const readToolCall = (call: JsonObject, path: Path): ToolCall => {
  const id = readNonEmptyString(call, "id", path)
  const { name, text } = readNameAndArguments(call, path)
  return makeToolCall(id, name, text, path)
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
    : readEach(message.tool_calls, fieldPath(path, "tool_calls"), readToolCall)
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
  const { id } = readCallId(readNonEmptyString(message, "tool_call_id", path))
  if (!calls.has(id)) {
    return invalidIn(path, "tool_call_id", "must match a tool call in an earlier assistant message")
  }
  return { role: "tool", content: readContent(message, path, readTextOnly), tool_call_id: id }
}

const readContentAndName = <A extends object>(message: JsonObject, path: Path, readPart: ReadPart<A>) => ({
  content: readContent(message, path, readPart),
  name: readOptionalString(message, "name", path)
})

const unknownRole = roleProblem(SystemMessage, UserMessage, AssistantMessage, ToolMessage)

const readMessage = (message: JsonObject, path: Path, calls: Set<string>): Message => {
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

/** Reads messages in order, because a tool result must match an earlier call. */
export const readMessages = (messages: ReadonlyArray<unknown>): ReadonlyArray<Message> => {
  const calls = new Set<string>()
  return readEach(messages, "messages", (message, path) =>
    addCacheMark(readMessage(message, path, calls), message, path)
  )
}
