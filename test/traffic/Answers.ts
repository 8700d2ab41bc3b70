/** `read`: an answer in any dialect, whole or streamed, in the words of none; a stream is held to the dialect's rules. */

import { record, records, string, text as textOf } from "../contracts/ChatHosts.ts"
import type { Dialect, Usage } from "./Case.ts"
import { textsIn } from "./Exact.ts"

export interface ReadCall {
  readonly id: string
  readonly name: string
  /** The JSON text as it came, digit for digit. */
  readonly arguments: string
}

export interface ReadError {
  readonly status: number
  readonly type: unknown
  readonly code: unknown
  readonly message: unknown
  readonly param: unknown
  readonly hint: unknown
}

export interface ReadAnswer {
  readonly status: number
  text: string
  reasoning: string
  calls: Array<{ id: string; name: string; arguments: string }>
  finish: string | undefined
  stop_sequence: unknown
  citations: ReadonlyArray<unknown>
  usage: Usage | undefined
  error: ReadError | undefined
  /** What breaks the dialect's rules. */
  readonly problems: Array<string>
  /** The final object of the dialect: the answer itself, or what a stream adds up to. */
  raw: unknown
}

type Fields = Record<PropertyKey, unknown>

const blank = (status: number): ReadAnswer => ({
  status,
  text: "",
  reasoning: "",
  calls: [],
  finish: undefined,
  stop_sequence: undefined,
  citations: [],
  usage: undefined,
  error: undefined,
  problems: [],
  raw: undefined
})

const errorIn = (status: number, body: Fields): ReadError => {
  const { code, hint, message, param, type } = record(body.error)
  return { status, type, code, message, param, hint }
}

const count = (value: unknown): number => (typeof value === "number" ? value : 0)

/** Counts are kept as they came, so that one that is no number is seen. */
const openAiUsage = (usage: Fields, prompt: string, completion: string): Usage => {
  const details = record(usage[`${prompt}_details`])
  return {
    prompt: count(usage[prompt]),
    completion: count(usage[completion]),
    cached: count(details.cached_tokens),
    cache_write: count(details.cache_write_tokens),
    cache_write_hour: count(details.cache_write_1h_tokens),
    reasoning: count(record(usage[`${completion}_details`]).reasoning_tokens),
    searches: count(record(usage.server_tool_use).web_search_requests)
  }
}

const messagesUsage = (usage: Fields): Usage => {
  const cached = count(usage.cache_read_input_tokens)
  const written = count(usage.cache_creation_input_tokens)
  return {
    prompt: count(usage.input_tokens) + cached + written,
    completion: count(usage.output_tokens),
    cached,
    cache_write: written,
    cache_write_hour: count(record(usage.cache_creation).ephemeral_1h_input_tokens),
    reasoning: count(record(usage.output_tokens_details).thinking_tokens),
    searches: count(record(usage.server_tool_use).web_search_requests)
  }
}

const messagesFinishes: Readonly<Record<string, string>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  tool_use: "tool_calls",
  refusal: "content_filter"
}

const callsOf = (tool_calls: unknown) =>
  records(tool_calls).map(({ custom, function: called, id }) => {
    const { arguments: given, input, name } = record(called ?? custom)
    return { id: string(id), name: string(name), arguments: string(given ?? input) }
  })

const chatWhole = (answer: ReadAnswer, body: Fields) => {
  const [choice = {}] = records(body.choices)
  const message = record(choice.message)
  answer.text = string(message.content)
  answer.reasoning = string(message.reasoning_content)
  answer.calls = callsOf(message.tool_calls)
  answer.finish = string(choice.finish_reason)
  answer.citations = records(message.annotations)
  answer.usage = openAiUsage(record(body.usage), "prompt_tokens", "completion_tokens")
}

const responsesWhole = (answer: ReadAnswer, body: Fields) => {
  const output = records(body.output)
  const parts = output.flatMap(({ content, type }) => (type === "message" ? records(content) : []))
  answer.text = textOf(parts)
  answer.reasoning = output.map(({ summary, type }) => (type === "reasoning" ? textOf(summary) : "")).join("")
  answer.calls = output.flatMap(({ arguments: given, call_id, input, name, type }) =>
    type === "function_call" || type === "custom_tool_call"
      ? [{ id: string(call_id), name: string(name), arguments: string(given ?? input) }]
      : []
  )
  answer.citations = parts.flatMap(({ annotations }) => records(annotations))
  answer.usage = openAiUsage(record(body.usage), "input_tokens", "output_tokens")
  const { reason } = record(body.incomplete_details)
  if (body.status === "failed") answer.error = errorIn(200, body)
  else if (body.status === "incomplete") answer.finish = reason === "max_output_tokens" ? "length" : string(reason)
  else answer.finish = answer.calls.length > 0 ? "tool_calls" : "stop"
}

const messagesEnd = (answer: ReadAnswer, { stop_reason, stop_sequence, usage }: Fields) => {
  answer.finish = messagesFinishes[string(stop_reason)] ?? string(stop_reason)
  answer.stop_sequence = stop_sequence
  answer.usage = messagesUsage(record(usage))
}

const messagesWhole = (answer: ReadAnswer, body: Fields, json: string) => {
  const blocks = records(body.content)
  const texts = textsIn(json)
  answer.text = textOf(blocks.filter(({ type }) => type === "text"))
  answer.reasoning = blocks.map(({ thinking }) => string(thinking)).join("")
  answer.calls = blocks.flatMap(({ id, name, type }, index) =>
    type === "tool_use"
      ? [{ id: string(id), name: string(name), arguments: texts.get(`content.${index}.input`) ?? "" }]
      : []
  )
  answer.citations = blocks.flatMap(({ citations }) => records(citations))
  messagesEnd(answer, body)
}

const wholes = { chat: chatWhole, responses: responsesWhole, messages: messagesWhole, api: () => undefined }

interface Event {
  readonly name: string | undefined
  readonly data: string
}

/** The events of a stream; its comments are left out. */
const eventsIn = (text: string, problems: Array<string>): ReadonlyArray<Event> => {
  if (text !== "" && !text.endsWith("\n\n")) problems.push("the stream ends within an event")
  return text.split("\n\n").flatMap((block) => {
    const lines = block.split("\n").filter((line) => line !== "" && !line.startsWith(":"))
    if (lines.length === 0) return []
    const name = lines.find((line) => line.startsWith("event: "))?.slice(7)
    const data = lines.flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []))
    if (data.length !== 1) problems.push(`an event with ${data.length} lines of data: ${block}`)
    return [{ name, data: data.join("\n") }]
  })
}

const chatStream = (answer: ReadAnswer, events: ReadonlyArray<Event>) => {
  const { problems } = answer
  const ids = new Set<string>()
  const citations: Array<unknown> = []
  events.forEach(({ data }, at) => {
    if (data === "[DONE]") {
      if (at !== events.length - 1) problems.push("events after [DONE]")
      return
    }
    const body = record(JSON.parse(data))
    if (body.error !== undefined) {
      answer.error = errorIn(200, body)
      if (at !== events.length - 1) problems.push("events after the error")
      return
    }
    ids.add(string(body.id))
    if (body.usage !== null && body.usage !== undefined) {
      answer.usage = openAiUsage(record(body.usage), "prompt_tokens", "completion_tokens")
    }
    for (const { delta: given, finish_reason: reason } of records(body.choices)) {
      const delta = record(given)
      if (answer.finish !== undefined) problems.push("a choice after its finish")
      if (at === 0 && delta.role !== "assistant") problems.push("no role in the first delta")
      answer.text += string(delta.content)
      answer.reasoning += string(delta.reasoning_content)
      citations.push(...records(delta.annotations))
      for (const piece of records(delta.tool_calls)) chatPiece(answer, piece)
      if (reason !== null) answer.finish = string(reason)
    }
  })
  if (ids.size > 1) problems.push("several ids in a stream")
  if (answer.error === undefined && events.at(-1)?.data !== "[DONE]") problems.push("no [DONE]")
  answer.citations = citations
}

/** Text of a custom tool's call comes as `input`, anything else as `arguments`. */
const chatPiece = ({ calls, problems }: ReadAnswer, { custom, function: given, id, index, type }: Fields) => {
  const { arguments: text, input: piece = text, name } = record(custom ?? given)
  const known = calls[Number(index)]
  if (known !== undefined) {
    if (name !== undefined) problems.push("a name again")
    known.arguments += string(piece)
    return
  }
  if (index !== calls.length) problems.push(`call ${String(index)} opens as number ${calls.length}`)
  if (type !== (custom === undefined ? "function" : "custom") || string(id) === "" || string(name) === "")
    problems.push("a call opens without id or name")
  calls.push({ id: string(id), name: string(name), arguments: string(piece) })
}

const responsesStream = (answer: ReadAnswer, events: ReadonlyArray<Event>) => {
  const { problems } = answer
  const items = new Map<number, { item: Fields; text: string; isDone: boolean }>()
  let text = ""
  events.forEach(({ data, name }, at) => {
    const event = record(JSON.parse(data))
    const { delta, item, item_id, output_index, response, type } = event
    if (name !== type) problems.push(`an event named ${name} of type ${String(type)}`)
    if (event.sequence_number !== at) problems.push(`number ${String(event.sequence_number)} at ${at}`)
    const index = Number(output_index)
    const known = items.get(index)
    if (type === "response.output_item.added") {
      if (known !== undefined) problems.push(`item ${index} twice`)
      items.set(index, { item: record(item), text: "", isDone: false })
    } else if (type === "response.output_item.done") {
      if (known === undefined) problems.push(`item ${index} ends before it began`)
      else {
        if (known.isDone) problems.push(`item ${index} ends twice`)
        known.isDone = true
        const { arguments: given, input, name: called } = record(item)
        if (called !== known.item.name) problems.push(`item ${index} is named ${String(called)} in the end`)
        const whole = given ?? input
        if (typeof whole === "string" && whole !== known.text) problems.push(`item ${index} is not what its deltas are`)
      }
    } else if (string(type).endsWith(".delta")) {
      if (known === undefined || known.isDone) problems.push(`a delta outside of item ${index}`)
      else if (known.item.id !== item_id) problems.push(`a delta of ${String(item_id)} in item ${index}`)
      if (known !== undefined) known.text += string(delta)
      if (type === "response.output_text.delta") text += string(delta)
    } else if (response !== undefined && string(record(response).status) !== "in_progress") {
      if (at !== events.length - 1) problems.push(`events after ${String(type)}`)
      answer.raw = response
      responsesWhole(answer, record(response))
    }
  })
  if (answer.raw === undefined) problems.push("no end")
  else if (answer.error === undefined) {
    if (answer.text !== text) problems.push("the text is not what its deltas are")
    if ([...items.values()].some(({ isDone }) => !isDone)) problems.push("an item without an end")
  } else if (answer.text === "") answer.text = text
}

const blockDeltas: Readonly<Record<string, ReadonlyArray<string>>> = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  tool_use: ["input_json_delta"]
}

const messagesStream = (answer: ReadAnswer, events: ReadonlyArray<Event>) => {
  const { problems } = answer
  const citations: Array<unknown> = []
  let [blocks, open]: [number, { readonly type: string; input: string } | undefined] = [0, undefined]
  let usage: Fields = {}
  events.forEach(({ data, name }, at) => {
    const event = record(JSON.parse(data))
    const { delta: given, index, message, type } = event
    const delta = record(given)
    if (name !== type) problems.push(`an event named ${name} of type ${String(type)}`)
    if (type === "ping") return
    if ((at === 0) !== (type === "message_start") && type !== "error") problems.push(`${String(type)} as event ${at}`)
    if (type === "message_start") usage = record(record(message).usage)
    else if (type === "content_block_start") {
      const block = record(event.content_block)
      if (open !== undefined) problems.push(`block ${String(index)} opens in an open one`)
      if (index !== blocks++) problems.push(`block ${String(index)} as number ${blocks - 1}`)
      open = { type: string(block.type), input: "" }
      answer.text += open.type === "text" ? string(block.text) : ""
      if (open.type === "tool_use") {
        answer.calls.push({ id: string(block.id), name: string(block.name), arguments: "" })
        if (JSON.stringify(block.input) !== "{}") problems.push("input at the start of a call")
      }
    } else if (type === "content_block_delta") {
      if (open === undefined || index !== blocks - 1) problems.push(`a delta outside of its block ${String(index)}`)
      else if (!(blockDeltas[open.type] ?? [string(delta.type)]).includes(string(delta.type))) {
        problems.push(`${String(delta.type)} in a block of ${open.type}`)
      }
      answer.text += string(delta.text)
      answer.reasoning += string(delta.thinking)
      if (delta.citation !== undefined) citations.push(delta.citation)
      const call = answer.calls.at(-1)
      if (call !== undefined && typeof delta.partial_json === "string") call.arguments += delta.partial_json
    } else if (type === "content_block_stop") {
      if (open === undefined || index !== blocks - 1) problems.push(`block ${String(index)} stops outside of it`)
      open = undefined
    } else if (type === "message_delta") {
      if (answer.finish !== undefined) problems.push("a second message_delta")
      if (open !== undefined) problems.push("the message ends in an open block")
      usage = { ...usage, ...record(event.usage) }
      messagesEnd(answer, { ...delta, usage })
    } else if (type === "error") answer.error = errorIn(200, event)
    else if (type !== "message_stop") problems.push(`an unknown event: ${String(type)}`)
    if ((type === "message_stop" || type === "error") !== (at === events.length - 1)) problems.push("no proper end")
  })
  // A call without input has no piece of it.
  for (const call of answer.calls) call.arguments ||= "{}"
  answer.citations = citations
}

const streams = {
  chat: chatStream,
  responses: responsesStream,
  messages: messagesStream,
  api: ({ problems }: ReadAnswer) => void problems.push("a stream")
}

/** Fails where the text is no JSON or no events. */
export const read = (dialect: Dialect, status: number, contentType: string, text: string): ReadAnswer => {
  const answer = blank(status)
  if (contentType.startsWith("text/event-stream")) {
    streams[dialect](answer, eventsIn(text, answer.problems))
    return answer
  }
  const body = record(JSON.parse(text))
  if (status === 200) wholes[dialect](answer, body, text)
  else answer.error = errorIn(status, body)
  answer.raw = body
  return answer
}
