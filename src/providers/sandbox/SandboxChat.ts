import { createHash } from "node:crypto"
import type { ChatRequest, Message, Tool, ToolCall } from "../../domain/Chat.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Wording.ts"
import { asFields, asList, type Fields } from "../client/JsonFields.ts"
import { removeSwitches } from "./Faults.ts"
import { getOwn, jsonFromSchema, wordsOf } from "./JsonFromSchema.ts"

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
/** An answer depends on this many last messages, and on this many characters of each. */
const maxMessages = 50
const maxCharacters = 8_000
const maxQuoteLength = 2_000

const closingSentences = [
  "Your request arrived complete and is valid.",
  "A real model writes more, but your code stays the same.",
  "Add a provider key to send this request to a real model.",
  "The same request always gets the same answer.",
  "This answer is metered and charged like any other.",
  "Your setup works. The next step is a real model."
]

export const textsOf = ({ content }: Message): ReadonlyArray<string> => {
  if (typeof content === "string") return [content]
  return (content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
}

const startOf = (message: Message): string => {
  let start = ""
  for (const text of textsOf(message)) if (start.length < maxCharacters) start += `${start === "" ? "" : " "}${text}`
  return start.slice(0, maxCharacters)
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
  /** The preferred tool first. Agents without file tools have a shell. */
  readonly tools: ReadonlyArray<keyof typeof toolNames>
  /** Values by parameter name, in lower case and without underscores. */
  readonly values: Fields
}

/** Tool names of Codex, Claude Code, opencode, qwen-code and Cline, in lower case and without underscores. */
const toolNames = {
  run: /^(bash|shell|shellcommand|execcommand|executecommand|runcommands?|runshellcommand|runinterminal)$/,
  read: /^(read|readfile)$/,
  write: /^(write|writefile|writetofile|createfile)$/,
  edit: /^(edit|editfile|strreplace|replace)$/,
  patch: /^applypatch$/,
  delegate: /^(agent|task|spawnagent)$/,
  wait: /^(wait|waitagent)$/
} as const

const filePattern = "`?([\\w@~./-]*\\.\\w+)`?"
const phrases = new RegExp(
  [
    "(?:ask|tell) a sub-?agent to (.+)",
    "run `([^`]+)`",
    `read (?:the file )?${filePattern}`,
    `(?:adds?|writes?|creates?) (?:the file )?${filePattern}(?: (?:with|saying) \`([^\`]*)\`)?`,
    `replace \`([^\`]+)\` (?:with|by) \`([^\`]*)\` in (?:the file )?${filePattern}`
  ]
    .map((phrase) => `\\b${phrase}`)
    .join("|"),
  "gis"
)

const toolFor = (tools: ReadonlyArray<Tool>, action: keyof typeof toolNames): Tool | undefined =>
  tools.slice(0, maxTools).find(({ function: { name } }) => {
    const last = name.slice(name.lastIndexOf("__") + 1)
    return toolNames[action].test(last.replaceAll("_", "").toLowerCase())
  })

/** Whether the client is a coding agent. Its tools are called only if the prompt asks for it. */
const isAgent = ({ tools }: ChatRequest): boolean => toolFor(tools, "run") !== undefined

// Agents wrap their own texts in a user message in tags.
const isReminder = (text: string): boolean => /^\s*(<[\w/-]+|$)/.test(text)

/** Removes the texts in tags and the system messages that agents add. */
const withoutReminders = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.flatMap((message): ReadonlyArray<Message> => {
    if (message.role === "system") return []
    if (message.role !== "user") return [message]
    const parts =
      typeof message.content === "string" ? [{ type: "text" as const, text: message.content }] : message.content
    const content = parts.filter((part) => part.type !== "text" || !isReminder(part.text))
    return content.length === 0 ? [] : [{ ...message, content }]
  })

const quoteForShell = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const pathValues = (path: string) => ({ path, filepath: path, absolutepath: path })
const shellValues = (command: string) => ({ command, cmd: command, commands: [command] })
const patchValues = (body: string) => {
  const patch = `*** Begin Patch\n*** ${body}\n*** End Patch\n`
  return { patch, patchtext: patch, input: patch }
}

const runAction = (command: string): Action => ({ tools: ["run"], values: shellValues(command) })

const readAction = (path: string): Action => ({
  tools: ["read", "run"],
  values: { ...pathValues(path), ...shellValues(`cat ${quoteForShell(path)}`) }
})

const writeAction = (path: string, content: string): Action => ({
  tools: ["patch", "write", "run"],
  values: {
    ...pathValues(path),
    ...shellValues(`printf '%s\\n' ${quoteForShell(content)} > ${quoteForShell(path)}`),
    ...patchValues(`Add File: ${path}\n+${content.replaceAll("\n", "\n+")}`),
    content
  }
})

const editAction = (path: string, before: string, after: string): Action => ({
  tools: ["patch", "edit"],
  values: {
    ...pathValues(path),
    ...patchValues(`Update File: ${path}\n@@\n-${before}\n+${after}`),
    oldstring: before,
    newstring: after
  }
})

const delegateAction = (task: string): Action => ({
  tools: ["delegate"],
  values: { prompt: task, task, message: task, runinbackground: false }
})

/** Waits for Codex sub-agents, which answer later. */
const waitAction = (results: ReadonlyArray<Message>): Action => ({
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
  Array.from(question.matchAll(phrases)).flatMap((match) => {
    const [
      ,
      task,
      command,
      path,
      newFile = "",
      content = "Hello from the sandbox.",
      before = "",
      after = "",
      editedFile
    ] = match
    if (task !== undefined) return [delegateAction(task), waitAction(results)]
    if (command !== undefined) return runAction(command)
    if (path !== undefined) return readAction(path)
    return editedFile === undefined ? writeAction(newFile, content) : editAction(editedFile, before, after)
  })

const argumentsFor = ({ values }: Action, { function: { parameters } }: Tool, question: string): Fields => {
  const required = asList(parameters?.["required"])
  return Object.fromEntries(
    Object.entries(asFields(parameters?.["properties"])).flatMap(([name, schema]) => {
      const value = getOwn(values, name.replaceAll("_", "").toLowerCase())
      if (value === undefined) return required.includes(name) ? [[name, jsonFromSchema(schema, question)]] : []
      const isList = asFields(schema).type === "array" && typeof value === "string"
      return [[name, isList ? ["bash", "-lc", value] : value]]
    })
  )
}

/** Returns one call per turn: the first requested action that was not called yet. */
const agentCalls = ({ messages, tools }: ChatRequest, question: string): ReadonlyArray<AgentCall> => {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
  const callCount = turn.reduce(
    (sum, message) => sum + (message.role === "assistant" ? (message.tool_calls?.length ?? 0) : 0),
    0
  )
  return actionsIn(question, turn)
    .flatMap((action) => {
      const [tool] = action.tools.flatMap((kind) => toolFor(tools, kind) ?? [])
      return tool === undefined ? [] : [{ name: tool.function.name, arguments: argumentsFor(action, tool, question) }]
    })
    .slice(callCount, callCount + 1)
}

/** With `auto`, calls the tools that the question names, or else the first tool, until there are results. */
const chooseTools = (request: ChatRequest, question: string): ReadonlyArray<Tool> => {
  const { toolChoice = "auto", tools } = request
  if (typeof toolChoice === "object")
    return tools.filter(({ function: { name } }) => name === toolChoice.function.name).slice(0, 1)
  if (toolChoice === "auto" && request.messages.at(-1)?.role !== "user") return []
  const { isMentioned } = wordsOf(question)
  const mentionedTools = tools.slice(0, maxTools).filter((tool) => isMentioned(tool.function.name))
  if (mentionedTools.length === 0) return tools.slice(0, 1)
  return mentionedTools.slice(0, request.parallelToolCalls === false ? 1 : maxCalls)
}

const chosenCalls = (request: ChatRequest, question: string): ReadonlyArray<AgentCall> =>
  chooseTools(request, question).map(({ function: { name, parameters = { type: "object" } } }, _, tools) => ({
    name,
    arguments: jsonFromSchema(parameters, question, tools.length)
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

const describeInput = ({ messages }: ChatRequest, question: string): string => {
  const start = messages.findLastIndex((message) => message.role !== "tool") + 1
  const first = messages[start]
  if (first?.role !== "tool") {
    return question === "" ? "Your message contains no text." : `You wrote "${shorten(question)}".`
  }
  const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.tool_calls ?? []) : []))
  const name = calls.findLast((call) => call.id === first.tool_call_id)?.function.name ?? "the tool"
  const others = messages.length - start - 1
  const otherResults = others === 0 ? "" : ` with ${pluralize(others, "further result")}`
  return `The result of ${name} is "${shorten(removeSwitches(startOf(first)), maxQuoteLength)}"${otherResults}. A real model would continue from here.`
}

const picturesIn = ({ content }: Message): ReadonlyArray<string> =>
  typeof content === "string" || content === null
    ? []
    : content.flatMap((part) => (part.type === "image_url" ? [part.image_url.url] : []))

/** Describes an image by type and size, so clients see that it is complete. A PNG has its sides in its first 24 bytes. */
const describeImage = (url: string): string => {
  const [prefix = "", type] = /^data:([\w/+.-]{1,40});base64,/i.exec(url.slice(0, 60)) ?? []
  if (type === undefined) return "a link"
  const data = url.slice(prefix.length)
  const head = Buffer.from(data.slice(0, 32), "base64")
  const sides =
    type === "image/png" && head.length === 24 ? `, ${head.readUInt32BE(16)} × ${head.readUInt32BE(20)}` : ""
  return `${type}${sides}, ${Buffer.byteLength(data, "base64")} bytes`
}

const composeAnswer = (request: ChatRequest, question: string, seed: string): string => {
  const pictures = request.messages.flatMap(picturesIn)
  return [
    `This is a sandbox answer in place of ${request.model}. No provider was called.`,
    describeInput(request, question),
    ...(pictures.length === 0
      ? []
      : [
          `The conversation contains ${pluralize(pictures.length, "image")}. The last one is ${describeImage(pictures.at(-1) ?? "")}.`
        ]),
    ...(request.webSearch ? ["You allowed web search, but the sandbox does not search."] : []),
    closingSentences[Number.parseInt(seed.slice(0, 8), 16) % closingSentences.length]
  ].join(" ")
}

const composeReasoning = (
  request: ChatRequest,
  question: string,
  calls: ReadonlyArray<ToolCall>
): string | undefined => {
  if (request.reasoningEffort === undefined) return undefined
  const names = calls.map((call) => call.function.name).join(", ")
  const thoughts = [
    `The conversation has ${pluralize(request.messages.length, "message")}, and the last question is "${shorten(question, 40)}".`,
    `The next step is to ${names === "" ? "answer in plain text" : `call ${names}`}.`,
    "The request allows this, and the answer can use the requested format.",
    "A second check leads to the same result."
  ]
  return thoughts.slice(0, reasoningEfforts.indexOf(request.reasoningEffort) + 1).join(" ")
}

const contentOf = (request: ChatRequest, question: string, seed: string): string => {
  const format = request.responseFormat
  const answer = composeAnswer(request, question, seed)
  if (format === undefined) return answer
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined
  if (schema === undefined) return JSON.stringify({ sandbox: true, model: request.model, answer })
  return JSON.stringify(jsonFromSchema(schema, question))
}

/** The same request always gets the same script. Sampling parameters don't matter. */
export const scriptFor = (originalRequest: ChatRequest): Script => {
  const request = isAgent(originalRequest)
    ? { ...originalRequest, messages: withoutReminders(originalRequest.messages) }
    : originalRequest
  const lastUserMessage = request.messages.findLast((message) => message.role === "user")
  const question = lastUserMessage === undefined ? "" : removeSwitches(startOf(lastUserMessage))
  const seed = digest([request.model, ...request.messages.slice(-maxMessages).map(startOf)])
  const toolCalls = callsOf(request, question, seed)
  const reasoning = composeReasoning(request, question, toolCalls)
  return { reasoning, content: toolCalls.length > 0 ? undefined : contentOf(request, question, seed), toolCalls }
}
