import { createHash } from "node:crypto"
import type { ChatRequest, Message, Tool, ToolCall } from "../../domain/Chat.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Plural.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"
import { withoutSwitches } from "./Faults.ts"
import { jsonFromSchema, own, wordsOf } from "./JsonFromSchema.ts"

interface AgentCall {
  readonly name: string
  readonly arguments: unknown
}

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

interface Action {
  /** The likeliest first: where an agent has no tool for files, it has a shell. */
  readonly tools: ReadonlyArray<keyof typeof names>
  /** By the parameters' names without underscores and in lower case. */
  readonly values: Fields
}

/** As Codex, Claude Code, opencode, qwen-code and Cline name them, without underscores and in lower case. */
const names = {
  run: /^(bash|shell|shellcommand|execcommand|executecommand|runcommands?|runshellcommand|runinterminal)$/,
  read: /^(read|readfile)$/,
  write: /^(write|writefile|writetofile|createfile)$/,
  edit: /^(edit|editfile|strreplace|replace)$/,
  patch: /^applypatch$/,
  delegate: /^(agent|task|spawnagent)$/,
  wait: /^(wait|waitagent)$/
} as const

const file = "`?([\\w@~./-]*\\.\\w+)`?"
const phrases = new RegExp(
  [
    "(?:ask|tell) a sub-?agent to (.+)",
    "run `([^`]+)`",
    `read (?:the file )?${file}`,
    `(?:adds?|writes?|creates?) (?:the file )?${file}(?: (?:with|saying) \`([^\`]*)\`)?`,
    `replace \`([^\`]+)\` (?:with|by) \`([^\`]*)\` in (?:the file )?${file}`
  ]
    .map((phrase) => `\\b${phrase}`)
    .join("|"),
  "gis"
)

const toolFor = (tools: ReadonlyArray<Tool>, kind: keyof typeof names): Tool | undefined =>
  tools.slice(0, maxTools).find(({ function: { name } }) => {
    const last = name.slice(name.lastIndexOf("__") + 1)
    return names[kind].test(last.replaceAll("_", "").toLowerCase())
  })

/** With these on offer, only what the prompt asks for is called. */
const isAgent = ({ tools }: ChatRequest): boolean => toolFor(tools, "run") !== undefined

// Agents wrap what they add to a user's message in tags.
const isReminder = (text: string): boolean => /^\s*(<[\w/-]+|$)/.test(text)

/** The conversation as the user sees it: agents add texts in tags, and system messages at the end. */
const withoutReminders = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.flatMap((message): ReadonlyArray<Message> => {
    if (message.role === "system") return []
    if (message.role !== "user") return [message]
    const parts =
      typeof message.content === "string" ? [{ type: "text" as const, text: message.content }] : message.content
    const content = parts.filter((part) => part.type !== "text" || !isReminder(part.text))
    return content.length === 0 ? [] : [{ ...message, content }]
  })

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const atPath = (path: string) => ({ path, filepath: path, absolutepath: path })
const byShell = (command: string) => ({ command, cmd: command, commands: [command] })
const byPatch = (body: string) => {
  const patch = `*** Begin Patch\n*** ${body}\n*** End Patch\n`
  return { patch, patchtext: patch, input: patch }
}

const run = (command: string): Action => ({ tools: ["run"], values: byShell(command) })

const read = (path: string): Action => ({
  tools: ["read", "run"],
  values: { ...atPath(path), ...byShell(`cat ${quote(path)}`) }
})

const write = (path: string, content: string): Action => ({
  tools: ["patch", "write", "run"],
  values: {
    ...atPath(path),
    ...byShell(`printf '%s\\n' ${quote(content)} > ${quote(path)}`),
    ...byPatch(`Add File: ${path}\n+${content.replaceAll("\n", "\n+")}`),
    content
  }
})

const edit = (path: string, before: string, after: string): Action => ({
  tools: ["patch", "edit"],
  values: {
    ...atPath(path),
    ...byPatch(`Update File: ${path}\n@@\n-${before}\n+${after}`),
    oldstring: before,
    newstring: after
  }
})

const delegate = (task: string): Action => ({
  tools: ["delegate"],
  values: { prompt: task, task, message: task, runinbackground: false }
})

/** For a sub-agent that answers later, as Codex starts them. */
const wait = (results: ReadonlyArray<Message>): Action => ({
  tools: ["wait"],
  values: {
    targets: results.flatMap((message) =>
      message.role === "tool"
        ? (/"agent_id":\s*"([^"]+)"/.exec(JSON.stringify(message.content).replaceAll('\\"', '"'))?.slice(1) ?? [])
        : []
    )
  }
})

const actionsIn = (question: string, results: ReadonlyArray<Message>): ReadonlyArray<Action> =>
  Array.from(question.matchAll(phrases)).flatMap((found) => {
    const [, task, command, path, written = "", content = "Hello from the sandbox.", before = "", after = "", edited] =
      found
    if (task !== undefined) return [delegate(task), wait(results)]
    if (command !== undefined) return run(command)
    if (path !== undefined) return read(path)
    return edited === undefined ? write(written, content) : edit(edited, before, after)
  })

const argumentsFor = ({ values }: Action, { function: { parameters } }: Tool, question: string): Fields => {
  const required = asList(parameters?.["required"])
  return Object.fromEntries(
    Object.entries(asFields(parameters?.["properties"])).flatMap(([name, schema]) => {
      const value = own(values, name.replaceAll("_", "").toLowerCase())
      if (value === undefined) return required.includes(name) ? [[name, jsonFromSchema(schema, question)]] : []
      const isList = asFields(schema).type === "array" && typeof value === "string"
      return [[name, isList ? ["bash", "-lc", value] : value]]
    })
  )
}

/** One call a turn: the first of what the question asks for that has not been called since. */
const agentCalls = ({ messages, tools }: ChatRequest, question: string): ReadonlyArray<AgentCall> => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
  const done = since.reduce((sum, it) => sum + (it.role === "assistant" ? (it.tool_calls?.length ?? 0) : 0), 0)
  return actionsIn(question, since)
    .flatMap((action) => {
      const [tool] = action.tools.flatMap((kind) => toolFor(tools, kind) ?? [])
      return tool === undefined ? [] : [{ name: tool.function.name, arguments: argumentsFor(action, tool, question) }]
    })
    .slice(done, done + 1)
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

const picturesIn = ({ content }: Message): ReadonlyArray<string> =>
  typeof content === "string" || content === null
    ? []
    : content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []))

/** Its type and bytes, which show that it arrived whole; a PNG's sides are in its first 24 bytes. */
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
  const pictures = request.messages.flatMap(picturesIn)
  return [
    `This is the sandbox answering in place of ${request.model}; no provider was called.`,
    reactionTo(request, question),
    ...(pictures.length === 0
      ? []
      : [
          `I see ${pluralize(pictures.length, "picture")} in the conversation, the last one ${describe(pictures.at(-1) ?? "")}.`
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
