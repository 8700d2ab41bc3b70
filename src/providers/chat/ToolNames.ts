import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { ChatAnswer, ChatEvent, ChatRequest } from "../../domain/Chat.ts"
import type { ChatPull } from "../../services/routing/Provider.ts"
import type { NameRule, WireRules } from "./WireRules.ts"

interface Patterns {
  readonly fullName: RegExp
  readonly invalidCharacters: RegExp
  readonly validStart: RegExp
}

const patternsByRule = new WeakMap<NameRule, Patterns>()

const patternsOf = (rule: NameRule): Patterns => {
  const cachedPatterns = patternsByRule.get(rule)
  if (cachedPatterns !== undefined) return cachedPatterns
  const { characters, first = characters, maxLength, minLength } = rule
  const patterns = {
    fullName: new RegExp(`^(?=[${first}])[${characters}]{${minLength},${maxLength}}$`),
    invalidCharacters: new RegExp(`[^${characters}]`, "g"),
    validStart: new RegExp(`^[${first}]`)
  }
  patternsByRule.set(rule, patterns)
  return patterns
}

export const matchesRule = (text: string, rule: NameRule): boolean => patternsOf(rule).fullName.test(text)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/** Returns `length` letters and digits, at most 64. Every wire format accepts them. `attempt` resolves collisions. */
const digest = (text: string, attempt: number, length: number): string => {
  const bytes = createHash("sha512").update(`${attempt}:${text}`).digest()
  let digits = ""
  for (const byte of bytes.subarray(0, length)) digits += alphabet[byte % alphabet.length]
  return digits
}

const digestLength = 10

/** Returns a name that the wire format accepts and that keeps the readable part. Equal names have equal replacements. */
const replaceName = (name: string, rule: NameRule, attempt: number): string => {
  const { invalidCharacters, validStart } = patternsOf(rule)
  const clean = name.replace(invalidCharacters, "_").slice(0, rule.maxLength)
  const start = validStart.test(clean) ? clean : `_${clean}`
  return `${start.slice(0, rule.maxLength - digestLength - 1)}_${digest(name, attempt, digestLength)}`
}

const idLength = 24

/** Returns an id that the wire format accepts. It depends only on the original id, so a call and its result match. */
export const replaceId = (id: string, rule: NameRule, attempt = 0): string => {
  const prefixedId = `call_${digest(id, attempt, idLength)}`
  return matchesRule(prefixedId, rule)
    ? prefixedId
    : digest(id, attempt, Math.max(rule.minLength, Math.min(rule.maxLength, idLength)))
}

/** Returns a name that the wire format accepts, for example for an earlier call whose tool is no longer declared. */
export const fitName = (name: string, rule: NameRule): string =>
  matchesRule(name, rule) ? name : replaceName(name, rule, 0)

/** Maps each name that the wire format refuses to a unique replacement. Undefined if it accepts all. */
export const fitNames = (
  names: Iterable<string>,
  rule: NameRule,
  reserved?: string
): ReadonlyMap<string, string> | undefined => {
  const usedNames = new Set<string>(reserved === undefined ? [] : [reserved])
  const refusedNames = new Set<string>()
  for (const name of names) (name !== reserved && matchesRule(name, rule) ? usedNames : refusedNames).add(name)
  if (refusedNames.size === 0) return undefined
  const replacements = new Map<string, string>()
  // Sorting makes the replacements independent of the order in the request.
  for (const name of [...refusedNames].toSorted()) {
    let attempt = 0
    let replacement = replaceName(name, rule, attempt)
    while (usedNames.has(replacement)) replacement = replaceName(name, rule, ++attempt)
    usedNames.add(replacement)
    replacements.set(name, replacement)
  }
  return replacements
}

function* namesIn({ messages, toolChoice, tools }: ChatRequest): Generator<string> {
  for (const tool of tools) yield tool.function.name
  for (const message of messages) {
    if (message.role === "assistant") for (const call of message.tool_calls ?? []) yield call.function.name
  }
  if (typeof toolChoice === "object") yield toolChoice.function.name
}

const hasRefusedName = (request: ChatRequest, rule: NameRule, reserved: string | undefined): boolean => {
  if (request.tools.length === 0 && !request.messages.some((message) => "tool_calls" in message)) return false
  for (const name of namesIn(request)) if (name === reserved || !matchesRule(name, rule)) return true
  return false
}

/** Maps each tool name of a request that the wire format refuses to the name to send. Undefined if it accepts all. */
export const fitNamesIn = (
  request: ChatRequest,
  { searchName, toolName }: WireRules
): ReadonlyMap<string, string> | undefined => {
  const reserved = request.webSearch ? searchName : undefined
  return hasRefusedName(request, toolName, reserved) ? fitNames(namesIn(request), toolName, reserved) : undefined
}

/** Maps sent tool names to the client's names. */
export type ClientNames = ReadonlyMap<string, string>

export const clientNames = (sentNames: ReadonlyMap<string, string> | undefined): ClientNames | undefined =>
  sentNames && new Map([...sentNames].map(([name, sentName]) => [sentName, name]))

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

/** Restores the client's tool names in a stream. Each call's full name arrives in one event. */
export const renamePull = (pull: ChatPull, names: ClientNames | undefined): ChatPull =>
  names === undefined ? pull : Effect.map(pull, (events) => events.map((event) => renameEvent(event, names)))
