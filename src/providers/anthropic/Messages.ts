import type { Message, Part, TextPart } from "../../domain/Chat.ts"
import { parseArguments } from "../chat/CallArguments.ts"

export type WireText = { type: "text"; text: string }
type MediaType = "image/jpeg" | "image/png" | "image/gif" | "image/webp"
type WireImage = {
  type: "image"
  source: { type: "url"; url: string } | { type: "base64"; media_type: MediaType; data: string }
}
export type WireCall = { type: "tool_use"; id: string; name: string; input: Readonly<Record<string, unknown>> }
type WireResult = { type: "tool_result"; tool_use_id: string; content?: string | Array<WireText> }
export type WireBlock = WireText | WireImage | WireCall | WireResult
export type WireMessage = { role: "user" | "assistant"; content: Array<WireBlock> }

/** White space alone, which this wire refuses wherever it stands. */
export const isBlank = (text: string): boolean => text.trim() === ""

const wireText = (text: string): Array<WireText> => (isBlank(text) ? [] : [{ type: "text", text }])

const wireTexts = (content: string | ReadonlyArray<TextPart>): Array<WireText> =>
  typeof content === "string" ? wireText(content) : content.flatMap(({ text }) => wireText(text))

const beginnings: ReadonlyArray<readonly [string, MediaType]> = [
  ["/9j/", "image/jpeg"],
  ["iVBORw0KGgo", "image/png"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"]
]

/** The type is told by the bytes: one that they contradict is refused. */
const wireImage = (url: string): WireImage => {
  if (!/^data:/i.test(url.slice(0, 5))) return { type: "image", source: { type: "url", url } }
  const given = url.slice(url.indexOf(",") + 1)
  const data = /[^A-Za-z0-9+/=]/.test(given) ? Buffer.from(given, "base64").toString("base64") : given
  const known = beginnings.find(([beginning]) => data.startsWith(beginning))
  return { type: "image", source: { type: "base64", media_type: known?.[1] ?? "image/png", data } }
}

const wirePart = (part: Part): Array<WireText | WireImage> =>
  part.type === "text" ? wireText(part.text) : [wireImage(part.image_url.url)]

const isTaken = (id: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(id)

interface CallIds {
  readonly ofCall: (id: string) => string
  readonly ofResult: (id: string) => string
}

/** Ids of other vendors may be longer, hold other characters, or begin anew with every answer. */
const callIds = (): CallIds => {
  const seen = new Set<string>()
  const unanswered = new Map<string, Array<string>>()
  return {
    ofCall: (id) => {
      const own = isTaken(id) && !seen.has(id) ? id : `toolu_replaced_${seen.size}`
      seen.add(own)
      const others = unanswered.get(id)
      if (others === undefined) unanswered.set(id, [own])
      else others.push(own)
      return own
    },
    ofResult: (id) => unanswered.get(id)?.shift() ?? id
  }
}

const blocksOf = (message: Message, ids: CallIds): Array<WireBlock> => {
  switch (message.role) {
    case "system":
      return []
    case "user":
      return typeof message.content === "string" ? wireText(message.content) : message.content.flatMap(wirePart)
    case "tool": {
      const content = wireTexts(message.content)
      const id = ids.ofResult(message.tool_call_id)
      return [{ type: "tool_result", tool_use_id: id, ...(content.length === 0 ? undefined : { content }) }]
    }
    default: {
      const calls = (message.tool_calls ?? []).map(({ id, function: { arguments: text, name } }): WireCall => {
        return { type: "tool_use", id: ids.ofCall(id), name, input: parseArguments(text) }
      })
      return [...wireTexts(message.content ?? ""), ...calls]
    }
  }
}

const isResult = ({ type }: WireBlock): boolean => type === "tool_result"

/** Results have to open the turn that follows their calls. */
const ordered = ({ content, role }: WireMessage): WireMessage =>
  role === "user" && content.some(isResult)
    ? { role, content: [...content.filter(isResult), ...content.filter((block) => !isResult(block))] }
    : { role, content }

/** A turn begun for the model must not end in white space. */
const trimmed = ({ content, role }: WireMessage): WireMessage => ({
  role,
  content: content.map((block, index) =>
    block.type === "text" && index === content.length - 1 ? { ...block, text: block.text.trimEnd() } : block
  )
})

export const turnsOf = (messages: ReadonlyArray<Message>): Array<WireMessage> => {
  const ids = callIds()
  const turns: Array<WireMessage> = []
  for (const message of messages) {
    const content = blocksOf(message, ids)
    if (content.length === 0) continue
    const role = message.role === "assistant" ? "assistant" : "user"
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content })
  }
  const inOrder = turns.map((turn, index) =>
    turn.role === "assistant" && index === turns.length - 1 ? trimmed(turn) : ordered(turn)
  )
  // A conversation may open with the model's greeting, which this wire has no place for.
  return inOrder[0]?.role === "assistant" ? [{ role: "user", content: wireText(".") }, ...inOrder] : inOrder
}

export const systemOf = (messages: ReadonlyArray<Message>): Array<WireText> =>
  messages.flatMap((message) => (message.role === "system" ? wireTexts(message.content) : []))
