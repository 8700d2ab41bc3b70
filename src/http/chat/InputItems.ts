import { Schema } from "effect"
import {
  type Message,
  type NativeOnly,
  type Part,
  readCallId,
  type TextPart,
  type ToolCall,
  unsignedMark
} from "../../domain/Chat.ts"
import { NonEmptyString, optional, upTo } from "../../domain/Constraints.ts"
import { someObject } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import {
  fieldPath,
  invalidAt,
  invalidIn,
  isArray,
  isNonEmptyString,
  isObject,
  isString,
  type JsonObject,
  type Path,
  readEach,
  readNonEmptyString,
  readString
} from "../body/Guards.ts"
import { Arguments, otherThan, roleProblem, textOr, typesOf } from "../schema/SharedFields.ts"
import { encodeCustomArguments, makeToolCall, maxNameLength } from "./ChatTools.ts"
import { addsTools, ClientToolsField, type ToolNames } from "./ClientTools.ts"
import {
  imagePartOf,
  invalidType,
  isTextType,
  makeAssistantPartReader,
  makeUserPartReader,
  type ReadPart,
  readParts,
  readText,
  refusalPartOf,
  responsesDetails,
  shortenType,
  textPartOf
} from "./ContentParts.ts"

const ItemTextPart = textPartOf({}).annotations({ identifier: "ResponsesTextPart" })
const ItemImagePart = imagePartOf({}).annotations({ identifier: "ResponsesImagePart" })
const ItemRefusalPart = refusalPartOf({})
const messageType = { type: optional(Schema.Literal("message")) }

const SystemMessage = Schema.Struct({
  ...messageType,
  role: Schema.Literal("system", "developer"),
  content: textOr(ItemTextPart)
}).annotations({ identifier: "ResponsesSystemMessage" })
const UserMessage = Schema.Struct({
  ...messageType,
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(ItemTextPart, ItemImagePart))
}).annotations({ identifier: "ResponsesUserMessage" })
const AssistantMessage = Schema.Struct({
  ...messageType,
  role: Schema.Literal("assistant"),
  content: Schema.Union(Schema.String, Schema.Array(Schema.Union(ItemTextPart, ItemRefusalPart)))
}).annotations({ identifier: "ResponsesAssistantMessage" })

const unknownRole = roleProblem(SystemMessage, UserMessage, AssistantMessage)

const callFields = {
  call_id: NonEmptyString.annotations({ description: "The `call_id` from the response." }),
  name: NonEmptyString.pipe(upTo(maxNameLength)),
  namespace: optional(NonEmptyString, "The tool's namespace, if it has one.")
}
const FunctionCall = Schema.Struct({
  type: Schema.Literal("function_call"),
  ...callFields,
  arguments: Arguments
}).annotations({ identifier: "ResponsesFunctionCall" })
const CustomToolCall = Schema.Struct({
  type: Schema.Literal("custom_tool_call"),
  ...callFields,
  input: Schema.String
}).annotations({ identifier: "ResponsesCustomToolCall" })
const CallOutput = Schema.Struct({
  type: Schema.Literal("function_call_output", "custom_tool_call_output"),
  call_id: NonEmptyString.annotations({ description: "The `call_id` of an earlier call in `input`." }),
  output: Schema.Union(Schema.String, Schema.Array(Schema.Union(ItemTextPart, ItemImagePart)))
}).annotations({ identifier: "ResponsesCallOutput" })

const TextsField = optional(Schema.Array(Schema.Struct({ text: Schema.String })))
const ReasoningItem = Schema.Struct({
  type: Schema.Literal("reasoning"),
  summary: TextsField,
  content: TextsField,
  encrypted_content: optional(Schema.String)
}).annotations({ identifier: "ResponsesReasoning", description: "A reasoning item from an earlier response." })

const AddedTools = Schema.Struct({
  type: Schema.Literal("additional_tools", "tool_search_output"),
  tools: ClientToolsField
}).annotations({ identifier: "ResponsesAddedTools", description: "Tools in addition to those in `tools`." })

const StoredReasoning = Schema.Struct({
  type: Schema.Literal("item_reference"),
  id: Schema.String.pipe(Schema.filter((id) => id.startsWith("rs_"), { jsonSchema: { pattern: "^rs_" } }))
}).annotations({
  identifier: "ResponsesItemReference",
  description: "The gateway stores nothing: it ignores references to reasoning. Any other reference returns 400."
})

const OtherItem = Schema.Struct({
  type: otherThan(
    "message",
    ...typesOf(FunctionCall, CustomToolCall, CallOutput, ReasoningItem, AddedTools, StoredReasoning)
  )
}).annotations({
  identifier: "ResponsesOtherItem",
  description:
    "Any other item. Providers with this API receive it. For others, the gateway drops items of hosted tools. Any other item returns 400."
})

export const InputField = Schema.Union(
  Schema.String,
  Schema.NonEmptyArray(
    Schema.Union(
      SystemMessage,
      UserMessage,
      AssistantMessage,
      FunctionCall,
      CustomToolCall,
      CallOutput,
      ReasoningItem,
      AddedTools,
      OtherItem,
      StoredReasoning
    )
  )
).annotations({ description: "A user's text, or the whole conversation so far as items, oldest first." })

const readTextOnly: ReadPart<TextPart> = (part, path) =>
  isTextType(part.type) ? readText(part, path) : invalidType(path, part.type, "input_text")
const readAssistantPart = makeAssistantPartReader(readTextOnly)
const readUserPart = makeUserPartReader("one of input_text, input_image", responsesDetails)

type FunctionNames = Pick<ToolNames, "toFunctionName">

const joinTexts = (parts: unknown): string =>
  isArray(parts) ? parts.map((part) => (isObject(part) && isString(part.text) ? part.text : "")).join("") : ""

const fileFields = ["file_data", "file_id", "file_url", "image_url"]
/** Returns whether an object refers to a file, which may be much larger than the reference. */
const refersToFile = (object: JsonObject): boolean => fileFields.some((name) => isNonEmptyString(object[name]))

/** Tokens of an image with the detail `original`, in addition to the catalog's `image_tokens`, which count a scaled one. */
const originalImageTokens = 16_384

/** Items of tools that the client runs. */
const clientItem = /^(apply_patch|local_shell|shell)_call(_output)?$/
/** Items of hosted tools. Other providers can do without them, because the model's later messages contain their results. */
const hostedItem =
  /^(?:additional_tools|compaction_trigger|mcp_\w+|(?:code_interpreter|file_search|image_generation|web_search)_call|tool_search_(?:call|output))$/

interface Turn {
  text: string
  reasoning: string
  readonly calls: Array<ToolCall>
}

/** Converts items to messages. All items of an assistant's turn become one message. */
class Conversation {
  readonly messages: Array<Message> = []
  /** Tokens of the prompt parts that only the native body contains, not `messages`. */
  extraTokens = 0
  /** The first item that `messages` cannot express, which limits the request to providers with this API. */
  nativeOnly: NativeOnly | undefined
  readonly #names: FunctionNames
  readonly #calls = new Set<string>()
  #turn: Turn | undefined
  #images: Array<Part> = []

  constructor(names: FunctionNames) {
    this.#names = names
  }

  #openTurn(): Turn {
    this.#addImages()
    this.#turn ??= { text: "", reasoning: "", calls: [] }
    return this.#turn
  }

  /** Adds the images of tool results as a user message after all results, because tool messages cannot contain images. */
  #addImages(): void {
    if (this.#images.length === 0) return
    this.messages.push({ role: "user", content: this.#images })
    this.#images = []
  }

  close(): void {
    this.#addImages()
    this.#closeTurn()
  }

  #closeTurn(): void {
    if (this.#turn === undefined) return
    const { calls, reasoning, text } = this.#turn
    this.#turn = undefined
    if (text === "" && calls.length === 0) {
      if (reasoning !== "") this.countNative(reasoning)
      return
    }
    this.messages.push({
      role: "assistant",
      content: text === "" ? null : text,
      ...(reasoning === "" ? undefined : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls })
    })
  }

  readMessage(item: JsonObject, path: Path): void {
    const contentPath = fieldPath(path, "content")
    if (item.role === "assistant") {
      const content = readParts(item.content, contentPath, readAssistantPart)
      this.#openTurn().text += isString(content) ? content : content.map(({ text }) => text).join("")
      return
    }
    const isSystem = item.role === "system" || item.role === "developer"
    if (!isSystem && item.role !== "user") {
      return invalidIn(path, "role", unknownRole)
    }
    if (isArray(item.content) && item.content.length === 0) return invalidAt(contentPath, "must not be an empty array")
    this.close()
    if (isSystem) {
      this.messages.push({ role: "system", content: readParts(item.content, contentPath, readTextOnly) })
      return
    }
    const content = readParts(item.content, contentPath, readUserPart)
    this.#countOriginals(item.content)
    this.messages.push({ role: "user", content })
  }

  readCall(item: JsonObject, path: Path): void {
    const callId = readNonEmptyString(item, "call_id", path)
    const toolName = readNonEmptyString(item, "name", path)
    const isCustom = item.type === "custom_tool_call"
    const input = readString(item, isCustom ? "input" : "arguments", path)
    const call = makeToolCall(callId, toolName, isCustom ? encodeCustomArguments(input) : input, path, "a `call_id`")
    const name = this.#names.toFunctionName(toolName, isNonEmptyString(item.namespace) ? item.namespace : undefined)
    this.#calls.add(call.id)
    this.#openTurn().calls.push({ ...call, function: { ...call.function, name } })
  }

  readOutput(item: JsonObject, path: Path): void {
    const { id } = readCallId(readNonEmptyString(item, "call_id", path))
    if (!this.#calls.has(id)) return invalidIn(path, "call_id", "must match a tool call earlier in `input`")
    const output = readParts(item.output, fieldPath(path, "output"), readUserPart)
    this.#closeTurn()
    if (isString(output)) {
      this.messages.push({ role: "tool", tool_call_id: id, content: output })
      return
    }
    const texts = output.filter((part) => part.type === "text")
    const images = output.filter((part) => part.type === "image_url")
    const note = images.length === 0 ? "" : "(The tool's pictures follow.)"
    this.messages.push({ role: "tool", tool_call_id: id, content: texts.length === 0 ? note : texts })
    this.#images.push(...images)
    this.#countOriginals(item.output)
  }

  readReasoning({ content, encrypted_content, summary }: JsonObject): void {
    const turn = this.#openTurn()
    const text = joinTexts(summary) + joinTexts(content)
    turn.reasoning += turn.reasoning !== "" && text !== "" ? `\n\n${text}` : text
    if (isString(encrypted_content) && encrypted_content !== unsignedMark) this.countNative(encrypted_content)
  }

  /** Reads items of client tools as calls and results. All other items stay only in the native body. */
  readOther(item: JsonObject, type: string, path: Path): void {
    const [, name, isOutput] = clientItem.exec(type) ?? []
    const id = isNonEmptyString(item.call_id) ? item.call_id : item.id
    if (name === undefined || !isNonEmptyString(id)) {
      this.countNative(addsTools(item) ? { ...item, tools: undefined } : item)
      if (!hostedItem.test(type)) {
        this.nativeOnly ??= { param: "messages", what: `The item \`${shortenType(type)}\`` }
      }
    } else if (isOutput === undefined) {
      const args = stringify(item.action ?? item.operation ?? {})
      this.readCall({ type: "function_call", call_id: id, name, arguments: args }, path)
    } else {
      const output = item.output ?? item.status ?? ""
      this.readOutput({ call_id: id, output: isString(output) ? output : stringify(output) }, path)
    }
  }

  countNative(value: unknown): void {
    this.extraTokens += someObject(value, refersToFile) ? Number.POSITIVE_INFINITY : jsonTokens(value)
  }

  #countOriginals(parts: unknown): void {
    if (!isArray(parts)) return
    for (const part of parts) if (isObject(part) && part.detail === "original") this.extraTokens += originalImageTokens
  }
}

const itemNotStored =
  "refers to a stored item, but the gateway stores nothing: send the item itself (in many clients, set `store: false`)"

const readItem = (conversation: Conversation, item: JsonObject, path: Path): void => {
  switch (item.type) {
    case undefined:
    case null:
    case "message":
      return conversation.readMessage(item, path)
    case "function_call":
    case "custom_tool_call":
      return conversation.readCall(item, path)
    case "function_call_output":
    case "custom_tool_call_output":
      return conversation.readOutput(item, path)
    case "reasoning":
      return conversation.readReasoning(item)
    case "item_reference":
      return isString(item.id) && item.id.startsWith("rs_") ? undefined : invalidAt(path, itemNotStored)
    default:
      if (!isNonEmptyString(item.type)) return invalidIn(path, "type", "must be a string")
      return conversation.readOther(item, item.type, path)
  }
}

interface InputMessages {
  readonly messages: ReadonlyArray<Message>
  readonly extraTokens: number
  readonly nativeOnly?: NativeOnly | undefined
}

export const readInput = (
  instructions: string | null | undefined,
  input: unknown,
  names: FunctionNames
): InputMessages => {
  const conversation = new Conversation(names)
  if (isNonEmptyString(instructions)) conversation.messages.push({ role: "system", content: instructions })
  if (isString(input)) {
    conversation.messages.push({ role: "user", content: input })
    return conversation
  }
  readEach(
    input,
    "input",
    (item, path) => readItem(conversation, item, path),
    "is required and must be a string or an array of items"
  )
  conversation.close()
  return conversation.messages.length === 0 ? invalidAt("input", "must contain at least one message") : conversation
}
