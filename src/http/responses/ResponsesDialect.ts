import {
  type ChatEvent,
  type ChatRequest,
  type Citation,
  encodeCallId,
  type FinishReason,
  type Usage
} from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { AnswerHead, ChatDialect } from "../chat/ChatDialect.ts"
import { readCustomInput } from "../chat/ChatTools.ts"
import { type ClientTool, makeToolNames, type ToolNames } from "../chat/ClientTools.ts"
import { encodeFrame, readEventName, type StreamEncoder } from "../chat/Sse.ts"
import { servedPath } from "../schema/Endpoints.ts"
import { decodeResponsesBody } from "./ResponsesBody.ts"
import {
  annotationJson,
  bodyOf,
  callItem,
  callKind,
  encodeFailure,
  makeItemId,
  messageItem,
  nativeResponse,
  reasoningItem,
  responseHead,
  responseJson,
  responsesError,
  responsesFieldNames,
  toIncompleteReason,
  usageJson,
  wantsEncrypted
} from "./ResponsesObject.ts"
import { createResponse } from "./ResponsesSchema.ts"

/** Encodes the numbered events of one stream. */
class EventEncoder {
  private sequence = 0
  private readonly head: string

  constructor(answerHead: AnswerHead, request: ChatRequest) {
    this.head = stringify(responseHead(answerHead, request)).slice(0, -1)
  }

  /** Encodes an event. `members` has its other fields as JSON without braces, and may be empty. */
  event(type: string, members: string): string {
    const head = `{"type":${JSON.stringify(type)},"sequence_number":${this.sequence++}`
    return encodeFrame(type, members === "" ? `${head}}` : `${head},${members}}`)
  }

  /** Encodes an event that contains the whole response. `members` and `output` are JSON without braces and brackets. */
  response(type: string, status: string, members: string, output = "", usage = "null"): string {
    const response = `${this.head},"status":"${status}",${members},"output":[${output}],"usage":${usage}}`
    return this.event(`response.${type}`, `"response":${response}`)
  }

  start(): string {
    const members = '"error":null,"incomplete_details":null'
    return this.response("created", "in_progress", members) + this.response("in_progress", "in_progress", members)
  }

  failed(failure: ReturnType<typeof encodeFailure>, output?: string): string {
    return this.response("failed", "failed", `"error":${JSON.stringify(failure)},"incomplete_details":null`, output)
  }
}

/** A message or reasoning item whose text is still incomplete. */
interface OpenText {
  readonly kind: "msg" | "rs"
  readonly index: number
  readonly id: string
  /** The item's id and indexes as JSON fields, which each of its events contains. */
  readonly location: string
  escapedText: string
  /** The sources of a message. Reasoning has none. */
  readonly annotations: Array<object>
}

/** The names of the events of messages and of reasoning, which are otherwise alike. */
const textEvents = {
  msg: {
    partAdded: "response.content_part.added",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    partDone: "response.content_part.done",
    position: "content_index",
    part: (text: string, annotations: ReadonlyArray<object>) => ({
      type: "output_text",
      text,
      annotations,
      logprobs: []
    }),
    extraMembers: ',"logprobs":[]'
  },
  rs: {
    partAdded: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    partDone: "response.reasoning_summary_part.done",
    position: "summary_index",
    part: (text: string, _annotations: ReadonlyArray<object>) => ({ type: "summary_text", text }),
    extraMembers: ""
  }
} as const

/** Stands for an item's text until `insertText` puts the escaped text into the JSON, which avoids escaping it again. */
const placeholder = "\u0000"
const escapedPlaceholder = JSON.stringify(placeholder).slice(1, -1)

const replacePlaceholder = (json: string, text: string, index: number): string =>
  json.slice(0, index) + text + json.slice(index + escapedPlaceholder.length)

/** Replaces the first placeholder by escaped text. Sources, which might contain a placeholder, follow a message's text. */
const insertText = (json: string, text: string): string =>
  replacePlaceholder(json, text, json.indexOf(escapedPlaceholder))

/** Replaces the last placeholder by escaped text. A tool's name, which might contain a placeholder, precedes the arguments. */
const insertArguments = (json: string, text: string): string =>
  replacePlaceholder(json, text, json.lastIndexOf(escapedPlaceholder))

type ToolCallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>

interface OpenCall {
  readonly tool: ClientTool
  readonly index: number
  readonly id: string
  readonly callId: string
  /** The item's id and index as JSON fields, which each of its events contains. */
  readonly location: string
  /** The escaped arguments, or the plain input of a custom tool. */
  input: string
}

/** Encodes a stream of a provider with another API. */
class TranslatedEncoder implements StreamEncoder {
  private openItem: OpenText | undefined
  private finishReason: FinishReason | undefined
  private names: ToolNames | undefined
  private count = 0
  /** The JSON of the complete items, by output index. */
  private readonly doneItems: Array<string> = []
  private readonly calls = new Map<number, OpenCall>()
  /** Sources that arrived while no message was open. */
  private citations: Array<Citation> = []
  /**
   * Escaped texts of earlier messages that `earlierLength` does not include yet. A source's indexes count from the start of
   * the first message, so this length is subtracted from them.
   */
  private uncountedTexts: Array<string> = []
  private earlierLength = 0
  private readonly isEncrypted: boolean
  private readonly events: EventEncoder
  private readonly answerHead: AnswerHead
  private readonly request: ChatRequest

  constructor(events: EventEncoder, answerHead: AnswerHead, request: ChatRequest) {
    this.events = events
    this.answerHead = answerHead
    this.request = request
    this.isEncrypted = wantsEncrypted(request)
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) text += this.encodeEvent(event)
    return text
  }

  finish(usage: Usage): string {
    const reason = toIncompleteReason(this.finishReason)
    const status = reason === undefined ? "completed" : "incomplete"
    let text = this.count === 0 || this.citations.length > 0 ? this.encodeText("msg", "") : ""
    text += this.closeText(status)
    for (const call of this.calls.values()) text += this.closeCall(call, status)
    const details = reason === undefined ? "null" : JSON.stringify({ reason })
    const members = `"error":null,"incomplete_details":${details}`
    return (
      text + this.events.response(status, status, members, this.doneItems.join(","), JSON.stringify(usageJson(usage)))
    )
  }

  error(...failure: Parameters<StreamEncoder["error"]>): string {
    return this.events.failed(encodeFailure(...failure), Object.values(this.doneItems).join(","))
  }

  private encodeEvent(event: ChatEvent): string {
    switch (event.type) {
      case "content":
        return event.text === "" ? "" : this.encodeText("msg", event.text)
      case "reasoning":
        return event.text === "" ? "" : this.encodeText("rs", event.text)
      case "tool_call":
        return this.encodeCall(event)
      case "citation":
        this.citations.push(event.citation)
        return this.openItem?.kind === "msg" ? this.annotate(this.openItem) : ""
      case "finish":
        this.finishReason = event.reason
        return ""
      default:
        return ""
    }
  }

  private itemEvent(type: "added" | "done", index: number, item: string): string {
    return this.events.event(`response.output_item.${type}`, `"output_index":${index},"item":${item}`)
  }

  private begin(kind: "msg" | "rs" | "fc" | "ctc") {
    const index = this.count++
    const id = makeItemId(this.answerHead, kind, index)
    return { index, id, location: `"item_id":"${id}","output_index":${index}` }
  }

  /** Encodes an empty reasoning item if the client requested encrypted reasoning and no item precedes. */
  private addEmptyReasoning(): string {
    if (!this.isEncrypted || this.count > 0) return ""
    const { id, index } = this.begin("rs")
    const item = JSON.stringify(reasoningItem(id, "", true))
    this.doneItems[index] = item
    return this.itemEvent("added", index, item) + this.itemEvent("done", index, item)
  }

  private encodeText(kind: "msg" | "rs", text: string): string {
    let prefix = ""
    if (this.openItem?.kind !== kind) {
      prefix = this.closeText("completed") + (kind === "msg" ? this.addEmptyReasoning() : "") + this.openText(kind)
    }
    const open = this.openItem
    if (open === undefined || text === "") return prefix
    const json = JSON.stringify(text)
    open.escapedText += json.slice(1, -1)
    const { delta, extraMembers } = textEvents[kind]
    return prefix + this.events.event(delta, `${open.location},"delta":${json}${extraMembers}`)
  }

  private openText(kind: "msg" | "rs"): string {
    const { partAdded, part, position } = textEvents[kind]
    const item = this.begin(kind)
    const { id, index } = item
    const location = `${item.location},"${position}":0`
    const open: OpenText = { kind, index, id, location, escapedText: "", annotations: [] }
    this.openItem = open
    const json = kind === "msg" ? { ...messageItem(id, "in_progress", ""), content: [] } : reasoningItem(id, "", false)
    return (
      this.itemEvent("added", index, JSON.stringify(json)) +
      this.events.event(partAdded, `${location},"part":${JSON.stringify(part("", []))}`) +
      (kind === "msg" ? this.annotate(open) : "")
    )
  }

  /** Adds the sources in `citations` to an open message. */
  private annotate(open: OpenText): string {
    let text = ""
    for (const citation of this.citations.splice(0)) {
      const offset = citation.end === undefined ? 0 : this.countEarlierText()
      const toMessageIndex = (index = 0) => Math.max(0, index - offset)
      const { end, start } = citation
      const annotation = annotationJson({ ...citation, start: toMessageIndex(start), end: toMessageIndex(end) })
      const index = open.annotations.push(annotation) - 1
      const members = `${open.location},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`
      text += this.events.event("response.output_text.annotation.added", members)
    }
    return text
  }

  private countEarlierText(): number {
    for (const text of this.uncountedTexts) this.earlierLength += String(JSON.parse(`"${text}"`)).length
    this.uncountedTexts = []
    return this.earlierLength
  }

  private closeText(status: string): string {
    const open = this.openItem
    if (open === undefined) return ""
    this.openItem = undefined
    const { annotations, escapedText, id, index, kind, location } = open
    if (kind === "msg") this.uncountedTexts.push(escapedText)
    const { done, extraMembers, part, partDone } = textEvents[kind]
    const item =
      kind === "msg"
        ? messageItem(id, status, placeholder, annotations)
        : reasoningItem(id, placeholder, this.isEncrypted)
    const itemJson = insertText(JSON.stringify(item), escapedText)
    const partJson = insertText(JSON.stringify(part(placeholder, annotations)), escapedText)
    this.doneItems[index] = itemJson
    return (
      this.events.event(done, `${location},"text":"${escapedText}"${extraMembers}`) +
      this.events.event(partDone, `${location},"part":${partJson}`) +
      this.itemEvent("done", index, itemJson)
    )
  }

  private encodeCall(event: ToolCallEvent): string {
    let prefix = this.closeText("completed")
    let call = this.calls.get(event.index)
    if (call === undefined) {
      prefix += this.addEmptyReasoning()
      this.names ??= makeToolNames(bodyOf(this.request))
      const tool = this.names.findClientTool(event.name ?? "")
      const item = this.begin(callKind(tool))
      const callId = encodeCallId(event.id ?? `call_${item.id}`, event.signature)
      call = { ...item, tool, callId, input: "" }
      this.calls.set(event.index, call)
      const json = callItem({ ...tool, id: item.id, callId, status: "in_progress", input: "" })
      prefix += this.itemEvent("added", call.index, JSON.stringify(json))
    }
    if (event.arguments === "") return prefix
    // The input of a custom tool is inside its JSON arguments, so `closeCall` decodes and sends it when they are complete.
    if (call.tool.isCustom) {
      call.input += event.arguments
      return prefix
    }
    const json = JSON.stringify(event.arguments)
    call.input += json.slice(1, -1)
    return prefix + this.events.event("response.function_call_arguments.delta", `${call.location},"delta":${json}`)
  }

  private closeCall({ callId, id, index, input, location, tool }: OpenCall, status: string): string {
    const item = { ...tool, id, callId, status }
    if (tool.isCustom) {
      const text = readCustomInput(input)
      const json = JSON.stringify(text)
      const itemJson = JSON.stringify(callItem({ ...item, input: text }))
      this.doneItems[index] = itemJson
      return (
        this.events.event("response.custom_tool_call_input.delta", `${location},"delta":${json}`) +
        this.events.event("response.custom_tool_call_input.done", `${location},"input":${json}`) +
        this.itemEvent("done", index, itemJson)
      )
    }
    const itemJson = insertArguments(JSON.stringify(callItem({ ...item, input: placeholder })), input)
    this.doneItems[index] = itemJson
    const members = `${location},"name":${JSON.stringify(tool.name)},"arguments":"${input}"`
    return this.events.event("response.function_call_arguments.done", members) + this.itemEvent("done", index, itemJson)
  }
}

/**
 * Encodes a stream. It forwards a provider's native events with the gateway's id, model and sequence numbers, and translates
 * the events of all other providers. The first events decide between the two.
 */
class ResponsesEncoder implements StreamEncoder {
  private isNative = false
  private translated: TranslatedEncoder | undefined
  /** The provider's last event. It is held back until the settlement, because it contains the billed usage. */
  private terminal: JsonObject | undefined
  private readonly events: EventEncoder
  private readonly answerHead: AnswerHead
  private readonly request: ChatRequest

  constructor(answerHead: AnswerHead, request: ChatRequest) {
    this.events = new EventEncoder(answerHead, request)
    this.answerHead = answerHead
    this.request = request
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    if (this.translated !== undefined) return this.translated.encode(events)
    this.isNative ||= events.some(({ type }) => type === "native")
    if (!this.isNative) return this.translate((encoder) => encoder.encode(events))
    let text = ""
    for (const event of events) if (event.type === "native") text += this.native(event.event)
    return text
  }

  finish(usage: Usage): string {
    if (!this.isNative) return this.translate((encoder) => encoder.finish(usage))
    return this.terminal === undefined ? "" : this.write(this.terminal, usage)
  }

  error(...failure: Parameters<StreamEncoder["error"]>): string {
    return this.isNative
      ? this.events.failed(encodeFailure(...failure))
      : this.translate((encoder) => encoder.error(...failure))
  }

  private translate(encode: (encoder: TranslatedEncoder) => string): string {
    if (this.translated !== undefined) return encode(this.translated)
    this.translated = new TranslatedEncoder(this.events, this.answerHead, this.request)
    return this.events.start() + encode(this.translated)
  }

  private native(event: JsonObject): string {
    switch (readEventName(event)) {
      case "response.completed":
      case "response.incomplete":
        this.terminal = event
        return ""
      case undefined:
      // `error` sends the gateway's own failure instead of these events.
      case "response.failed":
      case "error":
        return ""
      default:
        return this.write(event)
    }
  }

  private write(event: JsonObject, usage?: Usage): string {
    const response = isObject(event.response) ? nativeResponse(event.response, this.answerHead, usage) : event.response
    const members = { ...event, response, type: undefined, sequence_number: undefined }
    return this.events.event(String(event.type), stringify(members).slice(1, -1))
  }
}

export const responses: ChatDialect = {
  path: servedPath(createResponse),
  idPrefix: "resp",
  canReduceHold: true,
  decode: decodeResponsesBody,
  encodeAnswer: responseJson,
  encoder: (answerHead, request) => new ResponsesEncoder(answerHead, request),
  fieldNames: responsesFieldNames,
  encodeError: responsesError
}
