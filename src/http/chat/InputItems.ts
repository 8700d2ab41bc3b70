import { Schema } from "effect"
import { readCallId, unsigned } from "../../domain/CallId.ts"
import type { Message, NativeOnly, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { someObject } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { isRefusal, type Result, readEach } from "../schema/Decoding.ts"
import { otherThan, textOr } from "../schema/SharedFields.ts"
import { customArguments, longestName, toolCallOf } from "./ChatTools.ts"
import { addsTools, ClientToolsField, type ToolNames } from "./ClientTools.ts"
import {
  imagePartOf,
  isImageType,
  isTextType,
  readImage,
  readText,
  shownType,
  wrongAt,
  wrongType
} from "./ContentParts.ts"

const ItemTextPart = Schema.Struct({
  type: Schema.Literal("input_text", "output_text", "text"),
  text: Schema.String
}).annotations({ identifier: "ResponsesTextPart" })
const ItemImagePart = imagePartOf({}).annotations({ identifier: "ResponsesImagePart" })
const ItemRefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })
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

const callFields = {
  call_id: Filled.annotations({ description: "As the answer had it." }),
  name: Filled.pipe(upTo(longestName)),
  namespace: optional(Filled, "Of the tool, where it has one.")
}
const FunctionCall = Schema.Struct({
  type: Schema.Literal("function_call"),
  ...callFields,
  arguments: Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
}).annotations({ identifier: "ResponsesFunctionCall" })
const CustomToolCall = Schema.Struct({
  type: Schema.Literal("custom_tool_call"),
  ...callFields,
  input: Schema.String
}).annotations({ identifier: "ResponsesCustomToolCall" })
const CallOutput = Schema.Struct({
  type: Schema.Literal("function_call_output", "custom_tool_call_output"),
  call_id: Filled.annotations({ description: "Of an earlier call in `input`." }),
  output: Schema.Union(Schema.String, Schema.Array(Schema.Union(ItemTextPart, ItemImagePart)))
}).annotations({ identifier: "ResponsesCallOutput" })

const TextsField = optional(Schema.Array(Schema.Struct({ text: Schema.String })))
const ReasoningItem = Schema.Struct({
  type: Schema.Literal("reasoning"),
  summary: TextsField,
  content: TextsField,
  encrypted_content: optional(Schema.String)
}).annotations({ identifier: "ResponsesReasoning", description: "As the answer had it." })

const AddedTools = Schema.Struct({
  type: Schema.Literal("additional_tools", "tool_search_output"),
  tools: ClientToolsField
}).annotations({ identifier: "ResponsesAddedTools", description: "Tools beside those of the body." })

const OtherItem = Schema.Struct({
  type: otherThan(
    "message",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
    "reasoning",
    "additional_tools",
    "tool_search_output",
    "item_reference"
  )
}).annotations({
  identifier: "ResponsesOtherItem",
  description:
    "Any other item: passed on to a route that speaks this API. Elsewhere the items of a host's own tools are left out; any other is a 400."
})

const StoredReasoning = Schema.Struct({
  type: Schema.Literal("item_reference"),
  id: Schema.String.pipe(Schema.filter((id) => id.startsWith("rs_"), { jsonSchema: { pattern: "^rs_" } }))
}).annotations({
  identifier: "ResponsesItemReference",
  description: "Nothing is stored: a reference to reasoning is left out, and any other is refused."
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

export const wrongIn = (path: string, field: string, problem: string) => wrongAt(`${path}.${field}`, problem)

export const readTextOnly = (part: JsonObject, path: string): Result<TextPart> =>
  isTextType(part.type) ? readText(part, () => path) : wrongType(() => path, part.type, "input_text")

export const readAssistantPart = (part: JsonObject, path: string): Result<TextPart> => {
  if (part.type !== "refusal") return readTextOnly(part, path)
  return isString(part.refusal) ? { type: "text", text: part.refusal } : wrongIn(path, "refusal", "must be a string")
}

export const readUserPart = (part: JsonObject, path: string): Result<Part> => {
  if (isTextType(part.type)) return readText(part, () => path)
  return isImageType(part.type)
    ? readImage(part, () => path, "auto, low, high, original")
    : wrongType(() => path, part.type, "one of input_text, input_image")
}

export const readParts = <A>(
  content: unknown,
  path: string,
  readPart: (part: JsonObject, path: string) => Result<A>
): Result<string | ReadonlyArray<A>> => {
  if (isString(content)) return content
  if (!isArray(content)) return wrongAt(path, "must be a string or an array of content parts")
  return readEach(content, (part, index) => {
    const at = `${path}[${index}]`
    return isObject(part) ? readPart(part, at) : wrongAt(at, "must be an object")
  })
}

type FunctionNames = Pick<ToolNames, "functionOf">

const joinTexts = (given: unknown): string =>
  isArray(given) ? given.map((part) => (isObject(part) && isString(part.text) ? part.text : "")).join("") : ""

const files = ["file_data", "file_id", "file_url", "image_url"]
/** What may be large, however short the reference. */
const refersToFile = (object: JsonObject): boolean => files.some((name) => isFilled(object[name]))

/** Beyond the catalog's `image_tokens`, which are of a scaled picture. */
const originalImage = 16_384

/** Items of tools that run at the client. */
const clientItem = /^(apply_patch|local_shell|shell)_call(_output)?$/
/** Items that a conversation does not need: the answers after them hold the results. */
const hostItem =
  /^(?:additional_tools|compaction_trigger|mcp_\w+|(?:code_interpreter|file_search|image_generation|web_search)_call|tool_search_(?:call|output))$/

interface Turn {
  text: string
  reasoning: string
  readonly calls: Array<ToolCall>
}

/** Items become messages: an assistant's turn is one message, however many items it has. */
class Conversation {
  readonly messages: Array<Message> = []
  /** Tokens of prompt parts that only the native body holds. */
  extraTokens = 0
  /** The part of the request that only the native body holds. */
  only: NativeOnly | undefined
  readonly #names: FunctionNames
  readonly #calls = new Set<string>()
  #turn: Turn | undefined
  #images: Array<Part> = []

  constructor(names: FunctionNames) {
    this.#names = names
  }

  #open(): Turn {
    this.#showImages()
    this.#turn ??= { text: "", reasoning: "", calls: [] }
    return this.#turn
  }

  /** A tool's pictures follow all results, since only a user may show one. */
  #showImages(): void {
    if (this.#images.length === 0) return
    this.messages.push({ role: "user", content: this.#images })
    this.#images = []
  }

  close(): void {
    this.#showImages()
    this.#closeTurn()
  }

  #closeTurn(): void {
    if (this.#turn === undefined) return
    const { calls, reasoning, text } = this.#turn
    this.#turn = undefined
    if (text === "" && calls.length === 0) {
      if (reasoning !== "") this.keepNative(reasoning)
      return
    }
    this.messages.push({
      role: "assistant",
      content: text === "" ? null : text,
      ...(reasoning === "" ? undefined : { reasoning_content: reasoning }),
      ...(calls.length === 0 ? undefined : { tool_calls: calls })
    })
  }

  readMessage(item: JsonObject, path: string) {
    const at = `${path}.content`
    if (item.role === "assistant") {
      const content = readParts(item.content, at, readAssistantPart)
      if (isRefusal(content)) return content
      const text = isString(content) ? content : content.map(({ text }) => text).join("")
      const turn = this.#open()
      turn.text += text
      return undefined
    }
    const isSystem = item.role === "system" || item.role === "developer"
    if (!isSystem && item.role !== "user") {
      return wrongIn(path, "role", "must be one of system, developer, user, assistant")
    }
    if (isArray(item.content) && item.content.length === 0) return wrongAt(at, "must not be an empty array")
    this.close()
    if (isSystem) {
      const content = readParts(item.content, at, readTextOnly)
      if (isRefusal(content)) return content
      this.messages.push({ role: "system", content })
      return undefined
    }
    const content = readParts(item.content, at, readUserPart)
    if (isRefusal(content)) return content
    this.#countOriginals(item.content)
    this.messages.push({ role: "user", content })
    return undefined
  }

  readCall(item: JsonObject, path: string) {
    if (!isFilled(item.call_id)) return wrongIn(path, "call_id", "is required and must be a non-empty string")
    if (!isFilled(item.name)) return wrongIn(path, "name", "is required and must be a non-empty string")
    const isCustom = item.type === "custom_tool_call"
    const field = isCustom ? "input" : "arguments"
    const given = item[field]
    if (!isString(given)) return wrongIn(path, field, "must be a string")
    const text = isCustom ? customArguments(given) : given
    const call = toolCallOf(item.call_id, item.name, text)
    if (call === undefined)
      return wrongAt(path, `must have a \`call_id\` and a name of at most ${longestName} characters`)
    const name = this.#names.functionOf(item.name, isFilled(item.namespace) ? item.namespace : undefined)
    this.#calls.add(call.id)
    this.#open().calls.push({ ...call, function: { ...call.function, name } })
    return undefined
  }

  readOutput(item: JsonObject, path: string) {
    if (!isFilled(item.call_id)) return wrongIn(path, "call_id", "is required and must be a non-empty string")
    const { id } = readCallId(item.call_id)
    if (!this.#calls.has(id)) return wrongIn(path, "call_id", "must answer a tool call earlier in the input")
    const output = readParts(item.output, `${path}.output`, readUserPart)
    if (isRefusal(output)) return output
    this.#closeTurn()
    if (isString(output)) {
      this.messages.push({ role: "tool", tool_call_id: id, content: output })
      return undefined
    }
    const texts = output.filter((part) => part.type === "text")
    const images = output.filter((part) => part.type === "image_url")
    const note = images.length === 0 ? "" : "(The tool's pictures follow.)"
    this.messages.push({ role: "tool", tool_call_id: id, content: texts.length === 0 ? note : texts })
    this.#images.push(...images)
    this.#countOriginals(item.output)
    return undefined
  }

  readReasoning({ content, encrypted_content, summary }: JsonObject): void {
    const turn = this.#open()
    const text = joinTexts(summary) + joinTexts(content)
    turn.reasoning += turn.reasoning !== "" && text !== "" ? `\n\n${text}` : text
    if (isString(encrypted_content) && encrypted_content !== unsigned) this.keepNative(encrypted_content)
  }

  /** Items of tools that run at the client become calls and results; those of a host's own tools are left out. */
  readOther(item: JsonObject, type: string, path: string) {
    const [, name, isOutput] = clientItem.exec(type) ?? []
    const id = isFilled(item.call_id) ? item.call_id : item.id
    if (name === undefined || !isFilled(id)) {
      this.keepNative(addsTools(item) ? { ...item, tools: undefined } : item)
      if (!hostItem.test(type)) {
        this.only ??= { param: "messages", what: `The item \`${shownType(type)}\`` }
      }
      return undefined
    }
    if (isOutput === undefined) {
      const given = stringify(item.action ?? item.operation ?? {})
      return this.readCall({ type: "function_call", call_id: id, name, arguments: given }, path)
    }
    const given = item.output ?? item.status ?? ""
    const output = isString(given) ? given : stringify(given)
    return this.readOutput({ call_id: id, output }, path)
  }

  keepNative(value: unknown): void {
    this.extraTokens += someObject(value, refersToFile) ? Number.POSITIVE_INFINITY : jsonTokens(value)
  }

  #countOriginals(parts: unknown): void {
    if (!isArray(parts)) return
    for (const part of parts) if (isObject(part) && part.detail === "original") this.extraTokens += originalImage
  }
}

const stored = "refers to something stored, and nothing is stored: send the item itself (many clients: `store: false`)"

const readItem = (conversation: Conversation, item: unknown, path: string) => {
  if (!isObject(item)) return wrongAt(path, "must be an object")
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
      conversation.readReasoning(item)
      return undefined
    case "item_reference":
      return isString(item.id) && item.id.startsWith("rs_") ? undefined : wrongAt(path, stored)
    default:
      if (!isFilled(item.type)) return wrongIn(path, "type", "must be a string")
      return conversation.readOther(item, item.type, path)
  }
}

interface ReadInput {
  readonly messages: ReadonlyArray<Message>
  readonly extraTokens: number
  readonly only?: NativeOnly | undefined
}

export const readInput = (
  instructions: string | null | undefined,
  input: unknown,
  names: FunctionNames
): Result<ReadInput> => {
  const conversation = new Conversation(names)
  if (isFilled(instructions)) conversation.messages.push({ role: "system", content: instructions })
  if (isString(input)) {
    conversation.messages.push({ role: "user", content: input })
    return conversation
  }
  if (!isArray(input)) return wrongAt("input", "is required and must be a text or an array of items")
  for (const [index, item] of input.entries()) {
    const problem = readItem(conversation, item, `input[${index}]`)
    if (problem !== undefined) return problem
  }
  conversation.close()
  return conversation.messages.length === 0 ? wrongAt("input", "must hold at least one message") : conversation
}
