import type { Message, Part, TextPart } from "../../domain/Chat.ts"
import { joinTexts } from "./Messages.ts"
import type { WireRules } from "./WireRules.ts"

type System = Extract<Message, { role: "system" }>
type Assistant = Extract<Message, { role: "assistant" }>
type User = Extract<Message, { role: "user" }>
type WithTexts = Exclude<Message, User>

/** The smallest text that every host accepts. */
export const placeholder = { role: "user", content: "." } as const
/** What a person would write to a model that stopped. */
export const closing = { role: "user", content: "Continue." } as const

export const isBlank = (text: string): boolean => !/\S/.test(text)

const isBlankContent = (content: string | ReadonlyArray<Part> | null): boolean => {
  if (typeof content === "string") return isBlank(content)
  return content === null || content.every((part) => part.type === "text" && isBlank(part.text))
}

const hasCalls = ({ tool_calls }: Assistant): boolean => tool_calls !== undefined && tool_calls.length > 0

/** Up to each mark one text: the next turn's mark stands elsewhere, and a host's cache wants the same texts there. */
const joinToMarks = (parts: ReadonlyArray<TextPart>, role: WithTexts["role"]): string | ReadonlyArray<TextPart> => {
  const joined: Array<TextPart> = []
  let open: Array<TextPart> = []
  for (const [at, part] of parts.entries()) {
    open.push(part)
    if (part.cache_control === undefined && at < parts.length - 1) continue
    const text = joinTexts(open, role)
    if (text !== "") joined.push({ ...part, text })
    open = []
  }
  return joined.length === 0 ? "" : joined
}

const isMarked = ({ cache_control }: TextPart): boolean => cache_control !== undefined

const joinContent = (message: WithTexts, sendsMarks: boolean): WithTexts => {
  const { content } = message
  if (content === null || typeof content === "string") return message
  if (!sendsMarks || !content.some(isMarked)) return { ...message, content: joinTexts(content, message.role) }
  const joined = joinToMarks(content, message.role)
  return joined.length === content.length ? message : { ...message, content: joined }
}

/** Hosts take null beside calls, and some refuse an empty text there. */
const withoutBlank = (message: Assistant): Assistant =>
  message.content !== null && isBlankContent(message.content) ? { ...message, content: null } : message

const toParts = ({ cache_control, content }: System): ReadonlyArray<TextPart> => {
  const parts: ReadonlyArray<TextPart> = typeof content === "string" ? [{ type: "text", text: content }] : content
  if (cache_control === undefined) return parts
  return parts.map((part, at) => (at === parts.length - 1 ? { cache_control, ...part } : part))
}

/** Several messages as one. */
const mergeSystem = (messages: ReadonlyArray<System>, sendsMarks: boolean): System => {
  const [only, ...others] = messages
  if (only !== undefined && others.length === 0) return only
  const parts = messages.flatMap(toParts).filter(({ text }) => !isBlank(text))
  if (sendsMarks && parts.some(isMarked)) return { role: "system", content: joinToMarks(parts, "system") }
  return { role: "system", content: joinTexts(parts, "system") }
}

const isNamed = ({ name }: System): boolean => name !== undefined

const isTurn = ({ role }: Message): boolean => role !== "system"

const isUsers = (message: Message | undefined): boolean => message?.role === "user" || message?.role === "tool"

/** Whether a message may have to change: most conversations have none such. */
const mayChange = (message: Message, at: number, { blankUser, system }: WireRules): boolean => {
  const { content, role } = message
  if (role === "user") return !blankUser && isBlankContent(content)
  if (typeof content === "string") {
    if (role === "system") return at > 0 && (system === "first" || system === "joined")
    return role === "assistant" && isBlank(content)
  }
  return content === null ? role === "assistant" && !hasCalls(message) : true
}

/** Fits the form of each message, where system messages stand, and blank turns. */
export const fitTurns = (
  messages: ReadonlyArray<Message>,
  rules: WireRules,
  sendsMarks: boolean
): ReadonlyArray<Message> => {
  if (!messages.some((message, at) => mayChange(message, at, rules))) return messages
  const { blankUser, content: form, system } = rules
  const marks = sendsMarks && form === "marked"
  const fitted: Array<Message> = []
  /** Those before all other messages, where they become one. */
  const leading: Array<System> = []
  let lastTurn: Message | undefined
  let isChanged = false

  const isBlankUser = (message: Message): boolean =>
    !blankUser && message.role === "user" && isBlankContent(message.content)
  /** A blank turn says that it is the model's turn, unless another one of the user's says so: the same in each request. */
  const isAlone = (at: number): boolean => {
    if (isUsers(lastTurn)) return false
    let next = at + 1
    while (messages[next]?.role === "system") next++
    const following = messages[next]
    return following === undefined || isBlankUser(following) || !isUsers(following)
  }
  const isKept = (message: Message, at: number): boolean => {
    if (message.role === "assistant") return hasCalls(message) || !isBlankContent(message.content)
    return !isBlankUser(message) || isAlone(at)
  }
  const fitForm = (message: Message): Message => {
    if (message.role === "user") return isBlankUser(message) ? placeholder : message
    const joined = form === "parts" ? message : joinContent(message, marks)
    return joined.role === "assistant" && hasCalls(joined) ? withoutBlank(joined) : joined
  }
  const endLeading = (): void => {
    if (leading.length === 0) return
    fitted.push(mergeSystem(leading, marks))
    leading.length = 0
  }
  /** Undefined: it is one of the leading ones. */
  const fitSystem = (message: System): Message | undefined => {
    if (system !== "first" && system !== "joined") return message
    const [first = message] = leading
    const isJoined = first === message || system === "first" || !(isNamed(first) || isNamed(message))
    if (fitted.length === 0 && isJoined) {
      leading.push(message)
      return undefined
    }
    return system === "first" ? { ...message, role: "user" } : message
  }

  for (const [at, message] of messages.entries()) {
    const formed = isKept(message, at) ? fitForm(message) : undefined
    const placed = formed?.role === "system" ? fitSystem(formed) : formed
    if (placed !== undefined) {
      endLeading()
      fitted.push(placed)
      if (isTurn(placed)) lastTurn = placed
    }
    if (formed !== message || (placed === undefined ? leading.length > 1 : placed !== message)) isChanged = true
  }
  endLeading()
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

/** What the model reads last: hosts put a system message that follows it before all turns. */
const fitLast = (messages: ReadonlyArray<Message>, { prefill }: WireRules): ReadonlyArray<Message> => {
  const at = messages.findLastIndex(isTurn)
  const last = messages[at]
  // Calls are answered by results, not by words.
  if (prefill === "any" || last?.role !== "assistant" || hasCalls(last)) return messages
  if (prefill === "none") return [...messages, closing]
  const trimmed = trimLast(last)
  return trimmed === last ? messages : messages.with(at, trimmed)
}

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
