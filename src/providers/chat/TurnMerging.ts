import type { Message, Part, TextPart } from "../../domain/Chat.ts"
import { joinTexts } from "./Messages.ts"
import type { WireRules } from "./WireRules.ts"

type System = Extract<Message, { role: "system" }>
type Assistant = Extract<Message, { role: "assistant" }>
type User = Extract<Message, { role: "user" }>
type WithTexts = Exclude<Message, User>

/** The shortest turn that every provider accepts. */
export const placeholderTurn = { role: "user", content: "." } as const
/** Asks a model to continue after its own turn. */
export const continueTurn = { role: "user", content: "Continue." } as const

export const isBlank = (text: string): boolean => !/\S/.test(text)

const isBlankContent = (content: string | ReadonlyArray<Part> | null): boolean => {
  if (typeof content === "string") return isBlank(content)
  return content === null || content.every((part) => part.type === "text" && isBlank(part.text))
}

const hasCalls = ({ tool_calls }: Assistant): boolean => tool_calls !== undefined && tool_calls.length > 0

/**
 * Joins the parts up to each cache breakpoint. Texts without breakpoints are joined as well, so a text still matches
 * the provider's cache after the next turn has moved the breakpoint.
 */
const joinToBreakpoints = (
  parts: ReadonlyArray<TextPart>,
  role: WithTexts["role"]
): string | ReadonlyArray<TextPart> => {
  const joinedParts: Array<TextPart> = []
  let pendingParts: Array<TextPart> = []
  for (const [at, part] of parts.entries()) {
    pendingParts.push(part)
    if (part.cache_control === undefined && at < parts.length - 1) continue
    const text = joinTexts(pendingParts, role)
    if (text !== "") joinedParts.push({ ...part, text })
    pendingParts = []
  }
  return joinedParts.length === 0 ? "" : joinedParts
}

const hasCacheControl = ({ cache_control }: TextPart): boolean => cache_control !== undefined

const joinContent = (message: WithTexts, sendsBreakpoints: boolean): WithTexts => {
  const { content } = message
  if (content === null || typeof content === "string") return message
  if (!sendsBreakpoints || !content.some(hasCacheControl))
    return { ...message, content: joinTexts(content, message.role) }
  const joinedContent = joinToBreakpoints(content, message.role)
  return joinedContent.length === content.length ? message : { ...message, content: joinedContent }
}

/** Some providers refuse an empty text beside calls. All accept null. */
const withoutBlank = (message: Assistant): Assistant =>
  message.content !== null && isBlankContent(message.content) ? { ...message, content: null } : message

const toParts = ({ cache_control, content }: System): ReadonlyArray<TextPart> => {
  const parts: ReadonlyArray<TextPart> = typeof content === "string" ? [{ type: "text", text: content }] : content
  if (cache_control === undefined) return parts
  return parts.map((part, at) => (at === parts.length - 1 ? { cache_control, ...part } : part))
}

const mergeSystem = (messages: ReadonlyArray<System>, sendsBreakpoints: boolean): System => {
  const [first, ...others] = messages
  if (first !== undefined && others.length === 0) return first
  const parts = messages.flatMap(toParts).filter(({ text }) => !isBlank(text))
  if (sendsBreakpoints && parts.some(hasCacheControl))
    return { role: "system", content: joinToBreakpoints(parts, "system") }
  return { role: "system", content: joinTexts(parts, "system") }
}

const isNamed = ({ name }: System): boolean => name !== undefined

const isTurn = ({ role }: Message): boolean => role !== "system"

const isFromUser = (message: Message | undefined): boolean => message?.role === "user" || message?.role === "tool"

/** Most conversations need no change, so this check avoids copying them. */
const mayChange = (message: Message, at: number, { acceptsBlankUser, system }: WireRules): boolean => {
  const { content, role } = message
  if (role === "user") return !acceptsBlankUser && isBlankContent(content)
  if (typeof content === "string") {
    if (role === "system") return at > 0 && (system === "first" || system === "joined")
    return role === "assistant" && isBlank(content)
  }
  return content === null ? role === "assistant" && !hasCalls(message) : true
}

/** Changes content forms, positions of system messages and blank turns to what the wire format accepts. */
export const fitTurns = (
  messages: ReadonlyArray<Message>,
  rules: WireRules,
  sendsBreakpoints: boolean
): ReadonlyArray<Message> => {
  if (!messages.some((message, at) => mayChange(message, at, rules))) return messages
  const { acceptsBlankUser, content: contentForm, system } = rules
  const keepsBreakpoints = sendsBreakpoints && contentForm === "breakpoints"
  const fittedMessages: Array<Message> = []
  /** System messages before all others. They are merged into one. */
  const leadingSystem: Array<System> = []
  let lastTurn: Message | undefined
  let isChanged = false

  const isBlankUser = (message: Message): boolean =>
    !acceptsBlankUser && message.role === "user" && isBlankContent(message.content)
  /** A blank user turn is sent, as a placeholder, only if no other user turn is next to it. */
  const isOnlyUserTurn = (at: number): boolean => {
    if (isFromUser(lastTurn)) return false
    let next = at + 1
    while (messages[next]?.role === "system") next++
    const following = messages[next]
    return following === undefined || isBlankUser(following) || !isFromUser(following)
  }
  const isSent = (message: Message, at: number): boolean => {
    if (message.role === "assistant") return hasCalls(message) || !isBlankContent(message.content)
    return !isBlankUser(message) || isOnlyUserTurn(at)
  }
  const fitContent = (message: Message): Message => {
    if (message.role === "user") return isBlankUser(message) ? placeholderTurn : message
    const joinedMessage = contentForm === "parts" ? message : joinContent(message, keepsBreakpoints)
    return joinedMessage.role === "assistant" && hasCalls(joinedMessage) ? withoutBlank(joinedMessage) : joinedMessage
  }
  const flushLeadingSystem = (): void => {
    if (leadingSystem.length === 0) return
    fittedMessages.push(mergeSystem(leadingSystem, keepsBreakpoints))
    leadingSystem.length = 0
  }
  /** Returns undefined if the message joins the leading ones. */
  const fitSystem = (message: System): Message | undefined => {
    if (system !== "first" && system !== "joined") return message
    const [first = message] = leadingSystem
    const isJoined = first === message || system === "first" || !(isNamed(first) || isNamed(message))
    if (fittedMessages.length === 0 && isJoined) {
      leadingSystem.push(message)
      return undefined
    }
    return system === "first" ? { ...message, role: "user" } : message
  }

  for (const [at, message] of messages.entries()) {
    const fittedMessage = isSent(message, at) ? fitContent(message) : undefined
    const placedMessage = fittedMessage?.role === "system" ? fitSystem(fittedMessage) : fittedMessage
    if (placedMessage !== undefined) {
      flushLeadingSystem()
      fittedMessages.push(placedMessage)
      if (isTurn(placedMessage)) lastTurn = placedMessage
    }
    if (
      fittedMessage !== message ||
      (placedMessage === undefined ? leadingSystem.length > 1 : placedMessage !== message)
    )
      isChanged = true
  }
  flushLeadingSystem()
  return isChanged ? fittedMessages : messages
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

/** Fits the last turn. Later system messages don't count, because providers move them before all turns. */
const fitLast = (messages: ReadonlyArray<Message>, { prefill }: WireRules): ReadonlyArray<Message> => {
  const at = messages.findLastIndex(isTurn)
  const last = messages[at]
  // Results must follow calls, so no text is added after them.
  if (prefill === "any" || last?.role !== "assistant" || hasCalls(last)) return messages
  if (prefill === "none") return [...messages, continueTurn]
  const trimmedMessage = trimLast(last)
  return trimmedMessage === last ? messages : messages.with(at, trimmedMessage)
}

const fitFirst = (messages: ReadonlyArray<Message>, { requiresUserFirst }: WireRules): ReadonlyArray<Message> => {
  if (messages.length === 0) return [placeholderTurn]
  if (!requiresUserFirst) return messages
  const first = messages.findIndex(isTurn)
  // If there are only system messages, the encoder sends them as the user's turn.
  if (first < 0 || messages[first]?.role === "user") return messages
  return [...messages.slice(0, first), placeholderTurn, ...messages.slice(first)]
}

/** Changes the first and the last turn to what the wire format accepts. */
export const fitEnds = (messages: ReadonlyArray<Message>, rules: WireRules): ReadonlyArray<Message> =>
  fitLast(fitFirst(messages, rules), rules)
