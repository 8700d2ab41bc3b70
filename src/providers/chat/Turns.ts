import type { Message, Part, TextPart } from "../../domain/Chat.ts"
import { joinTexts } from "./Messages.ts"
import type { WireRules } from "./WireRules.ts"

type System = Extract<Message, { role: "system" }>
type Assistant = Extract<Message, { role: "assistant" }>
type User = Extract<Message, { role: "user" }>
type WithTexts = Exclude<Message, User>

/** The smallest text that every host accepts. */
const placeholder: Message = { role: "user", content: "." }
/** What a person would write to a model that stopped. */
const closing: Message = { role: "user", content: "Continue." }

export const isBlank = (text: string): boolean => !/\S/.test(text)

const isBlankContent = (content: string | ReadonlyArray<Part> | null): boolean => {
  if (typeof content === "string") return isBlank(content)
  return content === null || content.every((part) => part.type === "text" && isBlank(part.text))
}

const hasCalls = ({ tool_calls }: Assistant): boolean => tool_calls !== undefined && tool_calls.length > 0

const joinContent = (message: WithTexts, sendsMarks: boolean): WithTexts => {
  const { content } = message
  if (!Array.isArray(content)) return message
  if (sendsMarks && content.some((part: TextPart) => part.cache_control !== undefined)) return message
  // The types allow no text to an assistant only, and each of these roles has one.
  return { ...message, content: joinTexts(content, message.role) }
}

/** Hosts take null beside calls, and some refuse an empty text there. */
const withoutBlank = (message: Assistant): Assistant =>
  message.content !== null && isBlankContent(message.content) ? { ...message, content: null } : message

const toParts = ({ cache_control, content }: System): ReadonlyArray<TextPart> => {
  const parts: ReadonlyArray<TextPart> = typeof content === "string" ? [{ type: "text", text: content }] : content
  if (cache_control === undefined) return parts
  return parts.map((part, at) => (at === parts.length - 1 ? { cache_control, ...part } : part))
}

const hasMark = ({ cache_control, content }: System): boolean =>
  cache_control !== undefined ||
  (typeof content !== "string" && content.some((part) => part.cache_control !== undefined))

const mergeTwo = (first: System, second: System, sendsMarks: boolean): System => {
  if (sendsMarks && (hasMark(first) || hasMark(second))) {
    return { role: "system", content: [...toParts(first), ...toParts(second)] }
  }
  const texts = [joinTexts(first.content, "system"), joinTexts(second.content, "system")]
  return { role: "system", content: texts.filter((text) => !isBlank(text)).join("\n\n") }
}

const isNamed = ({ name }: System): boolean => name !== undefined

/** Fits the form of each message, where system messages stand, and blank turns. */
export const fitTurns = (
  messages: ReadonlyArray<Message>,
  rules: WireRules,
  sendsMarks: boolean
): ReadonlyArray<Message> => {
  const { blankUser, content: form, system } = rules
  const fitted: Array<Message> = []
  let isChanged = false

  const isKept = (message: Message, at: number): boolean => {
    if (message.role === "assistant") return hasCalls(message) || !isBlankContent(message.content)
    // The last one says that it is the model's turn.
    return blankUser || message.role !== "user" || at === messages.length - 1 || !isBlankContent(message.content)
  }
  const fitForm = (message: Message): Message => {
    if (message.role === "user") return blankUser || !isBlankContent(message.content) ? message : placeholder
    const joined = form === "parts" ? message : joinContent(message, sendsMarks && form === "marked")
    return joined.role === "assistant" && hasCalls(joined) ? withoutBlank(joined) : joined
  }
  /** Undefined: it has become part of the one before. */
  const fitSystem = (message: System): Message | undefined => {
    if (system !== "first" && system !== "joined") return message
    const [before] = fitted
    if (before === undefined) return message
    const isLeading = before.role === "system" && fitted.length === 1
    if (isLeading && (system === "first" || (!isNamed(before) && !isNamed(message)))) {
      fitted[0] = mergeTwo(before, message, sendsMarks && form === "marked")
      return undefined
    }
    return system === "first" ? { ...message, role: "user" } : message
  }

  for (const [at, message] of messages.entries()) {
    const formed = isKept(message, at) ? fitForm(message) : undefined
    const placed = formed?.role === "system" ? fitSystem(formed) : formed
    if (placed !== message) isChanged = true
    if (placed !== undefined) fitted.push(placed)
  }
  return isChanged ? fitted : messages
}

const trimLast = (message: Assistant): Assistant => {
  const { content } = message
  if (content === null) return message
  if (typeof content === "string") {
    const text = content.trimEnd()
    return text === content ? message : { ...message, content: text }
  }
  const last = content.findLastIndex(({ text }) => !isBlank(text))
  return {
    ...message,
    content: content.slice(0, last + 1).map((part, at) => (at === last ? { ...part, text: part.text.trimEnd() } : part))
  }
}

const fitLast = (messages: ReadonlyArray<Message>, { prefill }: WireRules): ReadonlyArray<Message> => {
  const last = messages.at(-1)
  // Calls are answered by results, not by words.
  if (prefill === "any" || last?.role !== "assistant" || hasCalls(last)) return messages
  if (prefill === "none") return [...messages, closing]
  const trimmed = trimLast(last)
  return trimmed === last ? messages : [...messages.slice(0, -1), trimmed]
}

const isTurn = ({ role }: Message): boolean => role !== "system"

const fitFirst = (messages: ReadonlyArray<Message>, { opensWithUser }: WireRules): ReadonlyArray<Message> => {
  if (messages.length === 0) return [placeholder]
  if (!opensWithUser) return messages
  const first = messages.findIndex(isTurn)
  // A system alone is sent as the user's turn by the encoder.
  if (first < 0 || messages[first]?.role === "user") return messages
  return [...messages.slice(0, first), placeholder, ...messages.slice(first)]
}

/** Fits how a conversation opens and ends. */
export const fitEnds = (messages: ReadonlyArray<Message>, rules: WireRules): ReadonlyArray<Message> =>
  fitLast(fitFirst(messages, rules), rules)
