import { Schema } from "effect"
import { readCallId, unsigned } from "../../domain/CallId.ts"
import type { Message, NativeOnly, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { someObject } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { isArray, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { Arguments, otherThan, roleProblem, textOr, typesOf } from "../schema/SharedFields.ts"
import { customArguments, longestName, toolCallOf } from "./ChatTools.ts"
import { addsTools, ClientToolsField, type ToolNames } from "./ClientTools.ts"
import {
  assistantPartReader,
  imagePartOf,
  invalidType,
  isTextType,
  type ReadPart,
  readParts,
  readText,
  refusalPartOf,
  responsesDetails,
  shownType,
  textPartOf,
  userPartReader
} from "./ContentParts.ts"
import { below, invalidAt, invalidIn, type Path, readEach, readFilled, readString } from "./FieldReaders.ts"

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
  call_id: Filled.annotations({ description: "As the answer had it." }),
  name: Filled.pipe(upTo(longestName)),
  namespace: optional(Filled, "Of the tool, where it has one.")
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

const StoredReasoning = Schema.Struct({
  type: Schema.Literal("item_reference"),
  id: Schema.String.pipe(Schema.filter((id) => id.startsWith("rs_"), { jsonSchema: { pattern: "^rs_" } }))
}).annotations({
  identifier: "ResponsesItemReference",
  description: "Nothing is stored: a reference to reasoning is left out, and any other is refused."
})

const OtherItem = Schema.Struct({
  type: otherThan(
    "message",
    ...typesOf(FunctionCall, CustomToolCall, CallOutput, ReasoningItem, AddedTools, StoredReasoning)
  )
}).annotations({
  identifier: "ResponsesOtherItem",
  description:
    "Any other item: passed on to a route that speaks this API. Elsewhere the items of a host's own tools are left out; any other is a 400."
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
const readAssistantPart = assistantPartReader(readTextOnly)
const readUserPart = userPartReader("one of input_text, input_image", responsesDetails)

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

  readMessage(item: JsonObject, path: Path): void {
    const at = below(path, "content")
    if (item.role === "assistant") {
      const content = readParts(item.content, at, readAssistantPart)
      this.#open().text += isString(content) ? content : content.map(({ text }) => text).join("")
      return
    }
    const isSystem = item.role === "system" || item.role === "developer"
    if (!isSystem && item.role !== "user") {
      return invalidIn(path, "role", unknownRole)
    }
    if (isArray(item.content) && item.content.length === 0) return invalidAt(at, "must not be an empty array")
    this.close()
    if (isSystem) {
      this.messages.push({ role: "system", content: readParts(item.content, at, readTextOnly) })
      return
    }
    const content = readParts(item.content, at, readUserPart)
    this.#countOriginals(item.content)
    this.messages.push({ role: "user", content })
  }

  readCall(item: JsonObject, path: Path): void {
    const callId = readFilled(item, "call_id", path)
    const ownName = readFilled(item, "name", path)
    const isCustom = item.type === "custom_tool_call"
    const given = readString(item, isCustom ? "input" : "arguments", path)
    const call = toolCallOf(callId, ownName, isCustom ? customArguments(given) : given, path, "a `call_id`")
    const name = this.#names.functionOf(ownName, isFilled(item.namespace) ? item.namespace : undefined)
    this.#calls.add(call.id)
    this.#open().calls.push({ ...call, function: { ...call.function, name } })
  }

  readOutput(item: JsonObject, path: Path): void {
    const { id } = readCallId(readFilled(item, "call_id", path))
    if (!this.#calls.has(id)) return invalidIn(path, "call_id", "must answer a tool call earlier in the input")
    const output = readParts(item.output, below(path, "output"), readUserPart)
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
    const turn = this.#open()
    const text = joinTexts(summary) + joinTexts(content)
    turn.reasoning += turn.reasoning !== "" && text !== "" ? `\n\n${text}` : text
    if (isString(encrypted_content) && encrypted_content !== unsigned) this.keepNative(encrypted_content)
  }

  /** Items of tools that run at the client become calls and results; those of a host's own tools are left out. */
  readOther(item: JsonObject, type: string, path: Path): void {
    const [, name, isOutput] = clientItem.exec(type) ?? []
    const id = isFilled(item.call_id) ? item.call_id : item.id
    if (name === undefined || !isFilled(id)) {
      this.keepNative(addsTools(item) ? { ...item, tools: undefined } : item)
      if (!hostItem.test(type)) {
        this.only ??= { param: "messages", what: `The item \`${shownType(type)}\`` }
      }
    } else if (isOutput === undefined) {
      const given = stringify(item.action ?? item.operation ?? {})
      this.readCall({ type: "function_call", call_id: id, name, arguments: given }, path)
    } else {
      const given = item.output ?? item.status ?? ""
      this.readOutput({ call_id: id, output: isString(given) ? given : stringify(given) }, path)
    }
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
      return isString(item.id) && item.id.startsWith("rs_") ? undefined : invalidAt(path, stored)
    default:
      if (!isFilled(item.type)) return invalidIn(path, "type", "must be a string")
      return conversation.readOther(item, item.type, path)
  }
}

interface ReadInput {
  readonly messages: ReadonlyArray<Message>
  readonly extraTokens: number
  readonly only?: NativeOnly | undefined
}

export const readInput = (instructions: string | null | undefined, input: unknown, names: FunctionNames): ReadInput => {
  const conversation = new Conversation(names)
  if (isFilled(instructions)) conversation.messages.push({ role: "system", content: instructions })
  if (isString(input)) {
    conversation.messages.push({ role: "user", content: input })
    return conversation
  }
  readEach(
    input,
    "input",
    (item, path) => readItem(conversation, item, path),
    "is required and must be a text or an array of items"
  )
  conversation.close()
  return conversation.messages.length === 0 ? invalidAt("input", "must hold at least one message") : conversation
}
