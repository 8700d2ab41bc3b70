import type { ChatRequest, Message, Tool } from "../../domain/Chat.ts"
import { asFields, asList, type Fields } from "../client/Json.ts"
import { jsonFromSchema, own } from "./JsonFromSchema.ts"

interface Action {
  /** The likeliest first: where an agent has no tool for files, it has a shell. */
  readonly tools: ReadonlyArray<keyof typeof names>
  /** By the parameters' names without underscores and in lower case. */
  readonly values: Fields
}

export interface AgentCall {
  readonly name: string
  readonly arguments: unknown
}

const maxTools = 1_000

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
export const isAgent = ({ tools }: ChatRequest): boolean => toolFor(tools, "run") !== undefined

// Agents wrap what they add to a user's message in tags.
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

/** For a sub-agent that answers later. */
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
export const agentCalls = ({ messages, tools }: ChatRequest, question: string): ReadonlyArray<AgentCall> => {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
  const done = since.reduce((sum, it) => sum + (it.role === "assistant" ? (it.tool_calls?.length ?? 0) : 0), 0)
  return actionsIn(question, since)
    .flatMap((action) => {
      const [tool] = action.tools.flatMap((kind) => toolFor(tools, kind) ?? [])
      return tool === undefined ? [] : [{ name: tool.function.name, arguments: argumentsFor(action, tool, question) }]
    })
    .slice(done, done + 1)
}
