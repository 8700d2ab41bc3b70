import { callIdOnWire } from "../../domain/CallId.ts"
import type { ChatEvent, ChatRequest, Citation, FinishReason, Usage } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { customInput } from "../chat/ChatTools.ts"
import { type ClientTool, type ToolNames, toolNamesOf } from "../chat/ClientTools.ts"
import { frame, nameOf, type StreamEncoder } from "../chat/Sse.ts"
import {
  annotationJson,
  bodyOf,
  callItem,
  callKind,
  cutBy,
  failureOf,
  itemId,
  messageItem,
  nativeResponse,
  reasoningItem,
  responseHead,
  usageJson,
  wantsEncrypted
} from "./ResponsesAnswer.ts"

/** Writes the events of one stream, numbered in order. */
class Events {
  private sequence = 0
  private readonly head: string

  constructor(name: AnswerName, request: ChatRequest) {
    this.head = stringify(responseHead(name, request)).slice(0, -1)
  }

  /** `members`: the event's JSON without its braces; empty where it has none of its own. */
  event(type: string, members: string): string {
    const head = `{"type":${JSON.stringify(type)},"sequence_number":${this.sequence++}`
    return frame(type, members === "" ? `${head}}` : `${head},${members}}`)
  }

  /** An event with the whole response; `more` are members, `output` is items, both as JSON. */
  response(type: string, status: string, more: string, output = "", usage = "null"): string {
    const response = `${this.head},"status":"${status}",${more},"output":[${output}],"usage":${usage}}`
    return this.event(`response.${type}`, `"response":${response}`)
  }

  start(): string {
    const nothing = '"error":null,"incomplete_details":null'
    return this.response("created", "in_progress", nothing) + this.response("in_progress", "in_progress", nothing)
  }

  failed(failure: ReturnType<typeof failureOf>, output?: string): string {
    return this.response("failed", "failed", `"error":${JSON.stringify(failure)},"incomplete_details":null`, output)
  }
}

/** An item whose text still grows. */
interface OpenText {
  readonly kind: "msg" | "rs"
  readonly index: number
  readonly id: string
  readonly at: string
  /** Escaped. */
  text: string
  /** Of a message. */
  readonly annotations: Array<object>
}

/** What the events of a message's text and of reasoning have in common, by the kind of their item. */
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
    more: ',"logprobs":[]'
  },
  rs: {
    partAdded: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    partDone: "response.reasoning_summary_part.done",
    position: "summary_index",
    part: (text: string, _annotations: ReadonlyArray<object>) => ({ type: "summary_text", text }),
    more: ""
  }
} as const

/** Stands for a text in an object that is written as JSON. */
const mark = "\u0000"
const escapedMark = JSON.stringify(mark).slice(1, -1)

const replaceMark = (json: string, text: string, at: number): string =>
  json.slice(0, at) + text + json.slice(at + escapedMark.length)

/** The JSON with a text, escaped piece by piece, instead of the first mark: sources follow it. */
const withText = (json: string, text: string): string => replaceMark(json, text, json.indexOf(escapedMark))

/** The same for the last mark: a tool's name precedes its arguments. */
const withArguments = (json: string, text: string): string => replaceMark(json, text, json.lastIndexOf(escapedMark))

type ToolCallEvent = Extract<ChatEvent, { readonly type: "tool_call" }>

interface OpenCall {
  readonly tool: ClientTool
  readonly index: number
  readonly id: string
  readonly callId: string
  readonly at: string
  given: string
}

/** Concatenates around the text, so that a delta costs one string. */
class TranslatedEncoder implements StreamEncoder {
  private open: OpenText | undefined
  private finishReason: FinishReason | undefined
  private names: ToolNames | undefined
  private count = 0
  /** The items that are whole, as JSON. */
  private readonly done: Array<string> = []
  private readonly calls = new Map<number, OpenCall>()
  /** Sources that came while no message was open. */
  private citations: Array<Citation> = []
  /** The texts of earlier messages, escaped, that are not measured: the places of a source are in all of them together. */
  private messages: Array<string> = []
  private measured = 0
  private readonly isEncrypted: boolean
  private readonly events: Events
  private readonly name: AnswerName
  private readonly request: ChatRequest

  constructor(events: Events, name: AnswerName, request: ChatRequest) {
    this.events = events
    this.name = name
    this.request = request
    this.isEncrypted = wantsEncrypted(request)
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) text += this.one(event)
    return text
  }

  finish(usage: Usage): string {
    const reason = cutBy(this.finishReason)
    const status = reason === undefined ? "completed" : "incomplete"
    let text = this.count === 0 || this.citations.length > 0 ? this.show("msg", "") : ""
    text += this.closeText(status)
    for (const call of this.calls.values()) text += this.closeCall(call, status)
    const why = reason === undefined ? "null" : JSON.stringify({ reason })
    const more = `"error":null,"incomplete_details":${why}`
    return text + this.events.response(status, status, more, this.done.join(","), JSON.stringify(usageJson(usage)))
  }

  error(...failure: Parameters<StreamEncoder["error"]>): string {
    return this.events.failed(failureOf(...failure), Object.values(this.done).join(","))
  }

  private one(event: ChatEvent): string {
    switch (event.type) {
      case "content":
        return event.text === "" ? "" : this.show("msg", event.text)
      case "reasoning":
        return event.text === "" ? "" : this.show("rs", event.text)
      case "tool_call":
        return this.call(event)
      case "citation":
        this.citations.push(event.citation)
        return this.open?.kind === "msg" ? this.annotate(this.open) : ""
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
    const id = itemId(this.name, kind, index)
    return { index, id, at: `"item_id":"${id}","output_index":${index}` }
  }

  /** Sends an empty reasoning item where the client asked for reasoning and there is none. */
  private announce(): string {
    if (!this.isEncrypted || this.count > 0) return ""
    const { id, index } = this.begin("rs")
    const item = JSON.stringify(reasoningItem(id, "", true))
    this.done[index] = item
    return this.itemEvent("added", index, item) + this.itemEvent("done", index, item)
  }

  private show(kind: "msg" | "rs", text: string): string {
    let before = ""
    if (this.open?.kind !== kind) {
      before = this.closeText("completed") + (kind === "msg" ? this.announce() : "") + this.openText(kind)
    }
    const { open } = this
    if (open === undefined || text === "") return before
    const escaped = JSON.stringify(text)
    open.text += escaped.slice(1, -1)
    const { delta, more } = textEvents[kind]
    return before + this.events.event(delta, `${open.at},"delta":${escaped}${more}`)
  }

  private openText(kind: "msg" | "rs"): string {
    const { partAdded, part, position } = textEvents[kind]
    const { at, id, index } = this.begin(kind)
    const open: OpenText = { kind, index, id, at: `${at},"${position}":0`, text: "", annotations: [] }
    this.open = open
    const item = kind === "msg" ? { ...messageItem(id, "in_progress", ""), content: [] } : reasoningItem(id, "", false)
    return (
      this.itemEvent("added", index, JSON.stringify(item)) +
      this.events.event(partAdded, `${open.at},"part":${JSON.stringify(part("", []))}`) +
      (kind === "msg" ? this.annotate(open) : "")
    )
  }

  /** Adds the waiting sources to an open message. */
  private annotate(open: OpenText): string {
    let text = ""
    for (const citation of this.citations.splice(0)) {
      const before = citation.end === undefined ? 0 : this.lengthBefore()
      const place = (at = 0) => Math.max(0, at - before)
      const annotation = annotationJson({ ...citation, start: place(citation.start), end: place(citation.end) })
      const index = open.annotations.push(annotation) - 1
      const members = `${open.at},"annotation_index":${index},"annotation":${JSON.stringify(annotation)}`
      text += this.events.event("response.output_text.annotation.added", members)
    }
    return text
  }

  private lengthBefore(): number {
    for (const escaped of this.messages) this.measured += String(JSON.parse(`"${escaped}"`)).length
    this.messages = []
    return this.measured
  }

  private closeText(status: string): string {
    const { open } = this
    if (open === undefined) return ""
    this.open = undefined
    const { annotations, at, id, index, kind } = open
    if (kind === "msg") this.messages.push(open.text)
    const { done, more, part, partDone } = textEvents[kind]
    const item = kind === "msg" ? messageItem(id, status, mark, annotations) : reasoningItem(id, mark, this.isEncrypted)
    const whole = withText(JSON.stringify(item), open.text)
    this.done[index] = whole
    return (
      this.events.event(done, `${at},"text":"${open.text}"${more}`) +
      this.events.event(partDone, `${at},"part":${withText(JSON.stringify(part(mark, annotations)), open.text)}`) +
      this.itemEvent("done", index, whole)
    )
  }

  private call(event: ToolCallEvent): string {
    let before = this.closeText("completed")
    let call = this.calls.get(event.index)
    if (call === undefined) {
      before += this.announce()
      this.names ??= toolNamesOf(bodyOf(this.request))
      const tool = this.names.clientTool(event.name ?? "")
      const begun = this.begin(callKind(tool))
      const callId = callIdOnWire(event.id ?? `call_${begun.id}`, event.signature)
      call = { ...begun, tool, callId, given: "" }
      this.calls.set(event.index, call)
      const item = callItem({ ...tool, id: call.id, callId, status: "in_progress", given: "" })
      before += this.itemEvent("added", call.index, JSON.stringify(item))
    }
    if (event.arguments === "") return before
    // The input of a custom tool is read once it is whole.
    if (call.tool.isCustom) {
      call.given += event.arguments
      return before
    }
    const escaped = JSON.stringify(event.arguments)
    call.given += escaped.slice(1, -1)
    return before + this.events.event("response.function_call_arguments.delta", `${call.at},"delta":${escaped}`)
  }

  private closeCall({ at, callId, given, id, index, tool }: OpenCall, status: string): string {
    const item = { ...tool, id, callId, status }
    if (tool.isCustom) {
      const input = customInput(given)
      const text = JSON.stringify(input)
      const whole = JSON.stringify(callItem({ ...item, given: input }))
      this.done[index] = whole
      return (
        this.events.event("response.custom_tool_call_input.delta", `${at},"delta":${text}`) +
        this.events.event("response.custom_tool_call_input.done", `${at},"input":${text}`) +
        this.itemEvent("done", index, whole)
      )
    }
    const whole = withArguments(JSON.stringify(callItem({ ...item, given: mark })), given)
    this.done[index] = whole
    const named = `"name":${JSON.stringify(tool.name)},"arguments":"${given}"`
    return (
      this.events.event("response.function_call_arguments.done", `${at},${named}`) +
      this.itemEvent("done", index, whole)
    )
  }
}

/**
 * The first events show whether the host speaks this dialect. Its own events are passed on under our names and numbers,
 * others are translated.
 */
export class ResponsesEncoder implements StreamEncoder {
  private isNative = false
  private translated: TranslatedEncoder | undefined
  /** The host's last event, held back until the money is settled. */
  private terminal: JsonObject | undefined
  private readonly events: Events
  private readonly name: AnswerName
  private readonly request: ChatRequest

  constructor(name: AnswerName, request: ChatRequest) {
    this.events = new Events(name, request)
    this.name = name
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
      ? this.events.failed(failureOf(...failure))
      : this.translate((encoder) => encoder.error(...failure))
  }

  private translate(encode: (encoder: TranslatedEncoder) => string): string {
    if (this.translated !== undefined) return encode(this.translated)
    this.translated = new TranslatedEncoder(this.events, this.name, this.request)
    return this.events.start() + encode(this.translated)
  }

  private native(event: JsonObject): string {
    switch (nameOf(event)) {
      case "response.completed":
      case "response.incomplete":
        this.terminal = event
        return ""
      case undefined:
      // The translated error replaces it.
      case "response.failed":
      case "error":
        return ""
      default:
        return this.write(event)
    }
  }

  private write(event: JsonObject, usage?: Usage): string {
    const response = isObject(event.response) ? nativeResponse(event.response, this.name, usage) : event.response
    const members = { ...event, response, type: undefined, sequence_number: undefined }
    return this.events.event(String(event.type), stringify(members).slice(1, -1))
  }
}
