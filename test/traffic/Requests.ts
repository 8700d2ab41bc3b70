/** `bodyOf`: a case's request as the JSON that a client of a dialect sends. */

import { list, record, records, string } from "../contracts/ChatHosts.ts"
import type { Dialect, Request } from "./Case.ts"
import { Raw, write } from "./Exact.ts"

type Message = Readonly<Record<PropertyKey, unknown>>

/** What is given as an object or as the text of one. */
const json = (given: unknown): unknown => (typeof given === "string" ? new Raw(given) : given)

const named = (choice: Request["tool_choice"], write: (name: string) => object) =>
  typeof choice === "object" ? write(choice.name) : choice

const chatMessages = ({ messages = [], system }: Request) =>
  system === undefined ? messages : [{ role: "system", content: system }, ...messages]

const chat = (request: Request) => {
  const { effort, format, max_tokens, parallel, stop, tool_choice, tools } = request
  return {
    messages: chatMessages(request),
    tools: tools?.map(({ parameters, ...tool }) => {
      return { type: "function", function: { ...tool, parameters: json(parameters) } }
    }),
    tool_choice: named(tool_choice, (name) => ({ type: "function", function: { name } })),
    response_format: format && {
      type: "json_schema",
      json_schema: { name: "answer", ...format, schema: json(format.schema) }
    },
    stop,
    max_tokens,
    reasoning_effort: effort,
    parallel_tool_calls: parallel
  }
}

/** Parts of a chat's content in a dialect's words. */
const parts = (content: unknown, text: (text: unknown) => object, image: (url: string) => object) =>
  typeof content === "string"
    ? content
    : records(content).map(({ image_url, type, ...part }) =>
        type === "text" ? { ...part, ...text(part.text) } : image(string(record(image_url).url))
      )

const inputItems = ({ content, role, tool_call_id, tool_calls }: Message): ReadonlyArray<object> => {
  const kind = role === "assistant" ? "output_text" : "input_text"
  const written = parts(
    content,
    (text) => ({ type: kind, text }),
    (image_url) => ({ type: "input_image", image_url, detail: "auto" })
  )
  if (role === "tool") return [{ type: "function_call_output", call_id: tool_call_id, output: written }]
  const calls = records(tool_calls).map(({ function: called, id }) => {
    return { type: "function_call", call_id: id, ...record(called) }
  })
  const isSilent = role === "assistant" && calls.length > 0 && (content ?? "") === ""
  return isSilent ? calls : [{ type: "message", role, content: content === null ? "" : written }, ...calls]
}

const responses = ({ effort, format, max_tokens, messages = [], parallel, system, tool_choice, tools }: Request) => ({
  instructions: system,
  input: messages.flatMap(inputItems),
  tools: tools?.map(({ parameters, strict = false, ...tool }) => {
    return { type: "function", ...tool, parameters: json(parameters), strict }
  }),
  tool_choice: named(tool_choice, (name) => ({ type: "function", name })),
  text: format && { format: { type: "json_schema", name: "answer", ...format, schema: json(format.schema) } },
  max_output_tokens: max_tokens,
  reasoning: effort === undefined ? undefined : { effort, summary: "auto" },
  parallel_tool_calls: parallel
})

const imageBlock = (url: string) => {
  const [, media_type, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? []
  const source = data === undefined ? { type: "url", url } : { type: "base64", media_type, data }
  return { type: "image", source }
}

const blocks = ({ content, role, tool_call_id, tool_calls }: Message): { role: string; content: unknown } => {
  const written = parts(content, (text) => ({ type: "text", text }), imageBlock)
  if (role === "tool") {
    return { role: "user", content: [{ type: "tool_result", tool_use_id: tool_call_id, content: written }] }
  }
  const calls = records(tool_calls).map(({ function: called, id }) => {
    const { arguments: given, name } = record(called)
    return { type: "tool_use", id, name, input: json(given) }
  })
  if (calls.length === 0) return { role: string(role), content: written ?? "" }
  const text = typeof written === "string" ? [{ type: "text", text: written }] : (written ?? [])
  return { role: string(role), content: [...text.filter((block) => record(block).text !== ""), ...calls] }
}

/** Results that follow each other are one turn. */
const joined = (turns: ReadonlyArray<{ role: string; content: unknown }>) => {
  const all: Array<{ role: string; content: unknown }> = []
  for (const turn of turns) {
    const last = all.at(-1)
    const isResult = ({ content }: { content: unknown }) => records(content)[0]?.type === "tool_result"
    if (last !== undefined && isResult(last) && isResult(turn)) {
      all[all.length - 1] = { role: "user", content: [...list(last.content), ...list(turn.content)] }
    } else all.push(turn)
  }
  return all
}

const messages = (request: Request) => {
  const { effort, format, max_tokens = 4_096, parallel, stop, tool_choice, tools } = request
  const type = tool_choice === "required" ? "any" : tool_choice
  const choice = typeof type === "object" ? { type: "tool", name: type.name } : type && { type }
  const isSingle = parallel === false && { disable_parallel_tool_use: true }
  return {
    max_tokens,
    system: request.system,
    messages: joined((request.messages ?? []).map(blocks)),
    tools: tools?.map(({ description, name, parameters, strict }) => ({
      name,
      description,
      input_schema: json(parameters),
      strict
    })),
    tool_choice: isSingle ? { type: "auto", ...choice, ...isSingle } : choice,
    stop_sequences: stop,
    thinking: effort === undefined ? undefined : { type: "adaptive" },
    output_config:
      format || effort ? { effort, format: format && { type: "json_schema", schema: json(format.schema) } } : undefined
  }
}

const bodies = { chat, responses, messages, api: () => ({}) }

export const paths: Readonly<Record<Exclude<Dialect, "api">, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages"
}

/** A body given as text has `MODEL` and `STREAM` where the others have fields. */
export const bodyOf = (dialect: Dialect, request: Request, model: string, stream: boolean): string => {
  const given = request.bodies?.[dialect]
  if (typeof given === "string") return given.replace("MODEL", model).replace("STREAM", String(stream))
  return write({
    model,
    stream,
    ...(given ?? bodies[dialect](request)),
    ...(dialect === "chat" && stream && { stream_options: { include_usage: true } }),
    ...request.extra?.[dialect]
  })
}

/** Whether a dialect can say what is asked. */
export const canSay = (dialect: Dialect, request: Request): boolean => {
  if (request.bodies !== undefined) return request.bodies[dialect] !== undefined
  return request.stop === undefined || dialect !== "responses"
}
