import type { ChatRequest, Message, Tool } from "../../domain/Chat.ts"
import { jsonFromSchema } from "./json/JsonFromSchema.ts"
import { isNode, type Node, nodeAt, own } from "./json/JsonSchema.ts"

/** What a prompt asks an agent for; `wait` follows a sub-agent that answers later. */
type Action =
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "read"; readonly path: string }
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "edit"; readonly path: string; readonly before: string; readonly after: string }
  | { readonly kind: "delegate"; readonly task: string }
  | { readonly kind: "wait" }

export interface AgentCall {
  readonly name: string
  readonly arguments: unknown
}

const maxTools = 1_000

/** Of Codex, Claude Code, opencode, qwen-code and Cline; without underscores and in lower case. */
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
export const isAgent = ({ tools }: ChatRequest): boolean => toolFor(tools, "run") !== undefined

// Agents put what they have to say beside the user into tags.
const isReminder = (text: string): boolean => /^\s*(<[\w/-]+|$)/.test(text)

/** The conversation as the user sees it: agents add texts in tags, and system messages at the end. */
export const withoutReminders = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> =>
  messages.flatMap((message): ReadonlyArray<Message> => {
    if (message.role === "system") return []
    if (message.role !== "user") return [message]
    const parts =
      typeof message.content === "string" ? [{ type: "text" as const, text: message.content }] : message.content
    const content = parts.filter((part) => part.type !== "text" || !isReminder(part.text))
    return content.length === 0 ? [] : [{ ...message, content }]
  })

const actionsIn = (question: string): ReadonlyArray<Action> =>
  Array.from(question.matchAll(phrases), (found): Action => {
    const [, task, command, read, written, content, before = "", after = "", edited] = found
    if (task !== undefined) return { kind: "delegate", task }
    if (command !== undefined) return { kind: "run", command }
    if (read !== undefined) return { kind: "read", path: read }
    if (edited !== undefined) return { kind: "edit", path: edited, before, after }
    return { kind: "write", path: written ?? "", content: content ?? "Hello from the sandbox." }
  })

const patchOf = (action: Action): string | undefined => {
  const hunk =
    action.kind === "write" ? `Add File: ${action.path}\n+${action.content.replaceAll("\n", "\n+")}` : undefined
  const change =
    action.kind === "edit" ? `Update File: ${action.path}\n@@\n-${action.before}\n+${action.after}` : undefined
  const body = hunk ?? change
  return body === undefined ? undefined : `*** Begin Patch\n*** ${body}\n*** End Patch\n`
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Where an agent has a shell and no tool for files. */
const commandFor = (action: Action): string | undefined => {
  if (action.kind === "run") return action.command
  if (action.kind === "read") return `cat ${quoted(action.path)}`
  if (action.kind === "write") return `printf '%s\\n' ${quoted(action.content)} > ${quoted(action.path)}`
  return undefined
}

const agentIds = (results: ReadonlyArray<Message>): ReadonlyArray<string> =>
  results.flatMap((message) =>
    message.role === "tool"
      ? (/"agent_id":\s*"([^"]+)"/.exec(JSON.stringify(message.content).replaceAll('\\"', '"'))?.slice(1) ?? [])
      : []
  )

const argumentsOf = (
  action: Action,
  { function: { parameters = {} } }: Tool,
  question: string,
  ids: ReadonlyArray<string>
): Node => {
  const path = "path" in action ? action.path : undefined
  const command = commandFor(action)
  const known: Node = {
    cmd: command,
    command,
    commands: command === undefined ? undefined : [command],
    path,
    filepath: path,
    absolutepath: path,
    content: action.kind === "write" ? action.content : undefined,
    oldstring: action.kind === "edit" ? action.before : undefined,
    newstring: action.kind === "edit" ? action.after : undefined,
    input: patchOf(action),
    patch: patchOf(action),
    patchtext: patchOf(action),
    prompt: action.kind === "delegate" ? action.task : undefined,
    task: action.kind === "delegate" ? action.task : undefined,
    message: action.kind === "delegate" ? action.task : undefined,
    runinbackground: action.kind === "delegate" ? false : undefined,
    targets: action.kind === "wait" ? ids : undefined
  }
  const required = own(parameters, "required")
  return Object.fromEntries(
    Object.entries(nodeAt(parameters, "properties")).flatMap(([name, schema]) => {
      const value = own(known, name.replaceAll("_", "").toLowerCase())
      if (value === undefined) {
        const isRequired = Array.isArray(required) && required.includes(name)
        return isRequired ? [[name, jsonFromSchema(schema, question)]] : []
      }
      const isList = isNode(schema) && own(schema, "type") === "array" && typeof value === "string"
      return [[name, isList ? ["bash", "-lc", value] : value]]
    })
  )
}

const toolOf = (tools: ReadonlyArray<Tool>, action: Action): Tool | undefined => {
  if (patchOf(action) !== undefined) {
    const found = toolFor(tools, "patch") ?? toolFor(tools, action.kind)
    if (found !== undefined) return found
  }
  return toolFor(tools, action.kind) ?? (commandFor(action) === undefined ? undefined : toolFor(tools, "run"))
}

/** One call a turn: the first of what the question asks for that has not been called since. */
export const agentCalls = ({ messages, tools }: ChatRequest, question: string): ReadonlyArray<AgentCall> => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
  const done = since.reduce((sum, it) => sum + (it.role === "assistant" ? (it.tool_calls?.length ?? 0) : 0), 0)
  const waits: ReadonlyArray<Action> = toolFor(tools, "wait") === undefined ? [] : [{ kind: "wait" }]
  const actions = actionsIn(question).flatMap((action) => (action.kind === "delegate" ? [action, ...waits] : [action]))
  return actions
    .flatMap((action) => {
      const tool = toolOf(tools, action)
      return tool === undefined
        ? []
        : [{ name: tool.function.name, arguments: argumentsOf(action, tool, question, agentIds(since)) }]
    })
    .slice(done, done + 1)
}
