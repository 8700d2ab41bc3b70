import { createHash } from "node:crypto"
import type { ChatRequest, Message, Tool, ToolCall } from "../../domain/Chat.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Plural.ts"
import { type AgentCall, agentCalls, isAgent, withoutReminders } from "./AgentTools.ts"
import { withoutSwitches } from "./Faults.ts"
import { jsonFromSchema, wordsOf } from "./JsonFromSchema.ts"

interface Script {
  readonly reasoning: string | undefined
  readonly content: string | undefined
  readonly toolCalls: ReadonlyArray<ToolCall>
}

const maxCalls = 4
const maxTools = 1_000
/** What an answer depends on: the last messages, and their last characters. */
const maxMessages = 50
const maxRead = 8_000
const maxQuoted = 2_000

const closings = [
  "Your request arrived whole and everything about it is in order.",
  "The real model would have more to say; the wiring is the same.",
  "Add a credential and this very request reaches the real thing.",
  "The same question will get the same answer, as often as you like.",
  "It is counted and charged like any other answer.",
  "From here on it is only a matter of asking a real model."
]

export const textsOf = ({ content }: Message): ReadonlyArray<string> => {
  if (typeof content === "string") return [content]
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
}

const startOf = (message: Message): string => {
  let start = ""
  for (const text of textsOf(message)) if (start.length < maxRead) start += `${start === "" ? "" : " "}${text}`
  return start.slice(0, maxRead)
}

const digest = (texts: ReadonlyArray<string>): string => {
  const hash = createHash("sha256")
  for (const text of texts) hash.update(text).update("\0")
  return hash.digest("hex")
}

const shorten = (text: string, maxLength = 80): string => {
  const line = text
    .slice(0, maxLength * 8)
    .replaceAll(/\s+/g, " ")
    .trim()
  const characters = Array.from(line)
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength).join("").trimEnd()}…`
}

/** `auto` calls the tools that the question names, or the first, until results have come back. */
const chooseTools = (request: ChatRequest, question: string): ReadonlyArray<Tool> => {
  const { toolChoice = "auto", tools } = request
  if (typeof toolChoice === "object")
    return tools.filter(({ function: { name } }) => name === toolChoice.function.name).slice(0, 1)
  if (toolChoice === "auto" && request.messages.at(-1)?.role !== "user") return []
  const { mention } = wordsOf(question)
  const named = tools.slice(0, maxTools).filter((tool) => mention(tool.function.name))
  if (named.length === 0) return tools.slice(0, 1)
  return named.slice(0, request.parallelToolCalls === false ? 1 : maxCalls)
}

const chosenCalls = (request: ChatRequest, question: string): ReadonlyArray<AgentCall> =>
  chooseTools(request, question).map(({ function: { name, parameters = { type: "object" } } }, _, chosen) => ({
    name,
    arguments: jsonFromSchema(parameters, question, chosen.length)
  }))

const callsOf = (request: ChatRequest, question: string, seed: string): ReadonlyArray<ToolCall> => {
  const { toolChoice = "auto" } = request
  if (toolChoice === "none") return []
  const calls =
    toolChoice === "auto" && isAgent(request) ? agentCalls(request, question) : chosenCalls(request, question)
  return calls.map((call, index) => ({
    id: `call_${digest([seed, String(index), call.name]).slice(0, 24)}`,
    type: "function",
    function: { name: call.name, arguments: JSON.stringify(call.arguments) }
  }))
}

const reactionTo = ({ messages }: ChatRequest, question: string): string => {
  const start = messages.findLastIndex((message) => message.role !== "tool") + 1
  const first = messages[start]
  if (first?.role !== "tool") {
    return question === "" ? "You sent no text to react to." : `You wrote "${shorten(question)}".`
  }
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
  const name = calls.findLast((call) => call.id === first.tool_call_id)?.function.name ?? "the tool"
  const others = messages.length - start - 1
  const more = others === 0 ? "" : ` and ${pluralize(others, "further result")}`
  return `I have what ${name} returned, "${shorten(withoutSwitches(startOf(first)), maxQuoted)}"${more}, and would go on from there.`
}

const imagesIn = ({ content }: Message): ReadonlyArray<string> =>
  typeof content === "string" || content === null
    ? []
    : content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []))

/** A PNG's sides are in its first 24 bytes. */
const describe = (url: string): string => {
  const [prefix = "", type] = /^data:([\w/+.-]{1,40});base64,/i.exec(url.slice(0, 60)) ?? []
  if (type === undefined) return "a link"
  const data = url.slice(prefix.length)
  const head = Buffer.from(data.slice(0, 32), "base64")
  const sides =
    type === "image/png" && head.length === 24 ? `, ${head.readUInt32BE(16)} × ${head.readUInt32BE(20)}` : ""
  return `${type}${sides}, ${Buffer.byteLength(data, "base64")} bytes`
}

const answerTo = (request: ChatRequest, question: string, seed: string): string => {
  const images = request.messages.flatMap(imagesIn)
  return [
    `This is the sandbox answering in place of ${request.model}; no provider was called.`,
    reactionTo(request, question),
    ...(images.length === 0
      ? []
      : [
          `I see ${pluralize(images.length, "picture")} in the conversation, the last one ${describe(images.at(-1) ?? "")}.`
        ]),
    ...(request.webSearch ? ["You allowed a web search, which the sandbox only pretends to make."] : []),
    closings[Number.parseInt(seed.slice(0, 8), 16) % closings.length]
  ].join(" ")
}

const reasoningOn = (request: ChatRequest, question: string, calls: ReadonlyArray<ToolCall>): string | undefined => {
  if (request.reasoningEffort === undefined) return undefined
  const names = calls.map((call) => call.function.name).join(", ")
  const thoughts = [
    `The conversation has ${pluralize(request.messages.length, "message")}, and the last question is "${shorten(question, 40)}".`,
    `The best way to go on is to ${names === "" ? "answer in plain words" : `call ${names}`}.`,
    "Nothing in the request speaks against it, and the format asked for can be kept.",
    "Looking at it once more from the other side leads to the same result."
  ]
  return thoughts.slice(0, reasoningEfforts.indexOf(request.reasoningEffort) + 1).join(" ")
}

const contentOf = (request: ChatRequest, question: string, seed: string): string => {
  const format = request.responseFormat
  const answer = answerTo(request, question, seed)
  if (format === undefined) return answer
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined
  if (schema === undefined) return JSON.stringify({ sandbox: true, model: request.model, answer })
  return JSON.stringify(jsonFromSchema(schema, question))
}

/** The same request always gets the same script, whatever its sampling parameters. */
export const scriptFor = (whole: ChatRequest): Script => {
  const request = isAgent(whole) ? { ...whole, messages: withoutReminders(whole.messages) } : whole
  const asked = request.messages.findLast((message) => message.role === "user")
  const question = asked === undefined ? "" : withoutSwitches(startOf(asked))
  const seed = digest([request.model, ...request.messages.slice(-maxMessages).map(startOf)])
  const toolCalls = callsOf(request, question, seed)
  const reasoning = reasoningOn(request, question, toolCalls)
  return { reasoning, content: toolCalls.length > 0 ? undefined : contentOf(request, question, seed), toolCalls }
}
