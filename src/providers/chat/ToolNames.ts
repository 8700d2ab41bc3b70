import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest } from "../../domain/Chat.ts"
import type { ChatPull } from "../../services/routing/Provider.ts"
import type { NameRule, WireRules } from "./WireRules.ts"

interface Patterns {
  readonly whole: RegExp
  readonly others: RegExp
  readonly first: RegExp
}

const known = new WeakMap<NameRule, Patterns>()

const patternsOf = (rule: NameRule): Patterns => {
  const before = known.get(rule)
  if (before !== undefined) return before
  const { characters, first = characters, longest, shortest } = rule
  const patterns = {
    whole: new RegExp(`^(?=[${first}])[${characters}]{${shortest},${longest}}$`),
    others: new RegExp(`[^${characters}]`, "g"),
    first: new RegExp(`^[${first}]`)
  }
  known.set(rule, patterns)
  return patterns
}

export const isFitting = (text: string, rule: NameRule): boolean => patternsOf(rule).whole.test(text)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/** At most 64 letters and digits, which every wire takes; `turn` tells apart texts with one digest. */
const digest = (text: string, turn: number, length: number): string => {
  const bytes = createHash("sha512").update(`${turn}:${text}`).digest()
  let digits = ""
  for (const byte of bytes.subarray(0, length)) digits += alphabet[byte % alphabet.length]
  return digits
}

const digestLength = 10

/** Keeps what a model can read of the name. The same text always becomes the same name. */
const replaceName = (name: string, rule: NameRule, turn: number): string => {
  const { first, others } = patternsOf(rule)
  const clean = name.replace(others, "_").slice(0, rule.longest)
  const start = first.test(clean) ? clean : `_${clean}`
  return `${start.slice(0, rule.longest - digestLength - 1)}_${digest(name, turn, digestLength)}`
}

const idLength = 24

/** The same for a call and its result, in every request. */
export const replaceId = (id: string, rule: NameRule, turn = 0): string => {
  const own = `call_${digest(id, turn, idLength)}`
  return isFitting(own, rule) ? own : digest(id, turn, Math.max(rule.shortest, Math.min(rule.longest, idLength)))
}

/** Fits one name, such as that of an earlier call whose tool is no longer declared. */
export const fitName = (name: string, rule: NameRule): string =>
  isFitting(name, rule) ? name : replaceName(name, rule, 0)

/** Names that a wire refuses, each with another one; undefined: it takes all. No two names become one. */
export const fitNames = (
  names: Iterable<string>,
  rule: NameRule,
  reserved?: string
): ReadonlyMap<string, string> | undefined => {
  const taken = new Set<string>(reserved === undefined ? [] : [reserved])
  const refused = new Set<string>()
  for (const name of names) (name !== reserved && isFitting(name, rule) ? taken : refused).add(name)
  if (refused.size === 0) return undefined
  const fitted = new Map<string, string>()
  // The order of a request must not matter.
  for (const name of [...refused].toSorted()) {
    let turn = 0
    let replaced = replaceName(name, rule, turn)
    while (taken.has(replaced)) replaced = replaceName(name, rule, ++turn)
    taken.add(replaced)
    fitted.set(name, replaced)
  }
  return fitted
}

function* namesIn({ messages, toolChoice, tools }: ChatRequest): Generator<string> {
  for (const tool of tools) yield tool.function.name
  for (const message of messages) {
    if (message.role === "assistant") for (const call of message.tool_calls ?? []) yield call.function.name
  }
  if (typeof toolChoice === "object") yield toolChoice.function.name
}

const refusesOne = (request: ChatRequest, rule: NameRule, reserved: string | undefined): boolean => {
  if (request.tools.length === 0 && !request.messages.some((message) => "tool_calls" in message)) return false
  for (const name of namesIn(request)) if (name === reserved || !isFitting(name, rule)) return true
  return false
}

/** The client's names that a wire refuses, each with the one to send; undefined: it takes all. */
export const fitNamesIn = (
  request: ChatRequest,
  { searchName, toolName }: WireRules
): ReadonlyMap<string, string> | undefined => {
  const reserved = request.webSearch ? searchName : undefined
  return refusesOne(request, toolName, reserved) ? fitNames(namesIn(request), toolName, reserved) : undefined
}

/** Names as sent, each with the client's. */
export type ClientNames = ReadonlyMap<string, string>

export const clientNames = (sent: ReadonlyMap<string, string> | undefined): ClientNames | undefined =>
  sent && new Map([...sent].map(([name, fitted]) => [fitted, name]))

/** An answer with the client's names of its tools. */
export const renameAnswer = (answer: ChatAnswer, names: ClientNames | undefined): ChatAnswer => {
  if (names === undefined || !answer.toolCalls.some((call) => names.has(call.function.name))) return answer
  const toolCalls = answer.toolCalls.map((call) => {
    const name = names.get(call.function.name)
    return name === undefined ? call : { ...call, function: { ...call.function, name } }
  })
  return { ...answer, toolCalls }
}

const renameEvent = (event: ChatEvent, names: ClientNames): ChatEvent => {
  if (event.type !== "tool_call" || event.name === undefined) return event
  const name = names.get(event.name)
  return name === undefined ? event : { ...event, name }
}

/** The same for a stream, whose calls have their whole name in one event. */
export const renamePull = (pull: ChatPull, names: ClientNames | undefined): ChatPull =>
  names === undefined ? pull : Effect.map(pull, (events) => events.map((event) => renameEvent(event, names)))
