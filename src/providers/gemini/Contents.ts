import type { Message, Part, TextPart, ToolCall } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { parseArguments } from "../chat/CallArguments.ts"
import { sentinel, unseal } from "../chat/ThoughtSignatures.ts"

export interface WireBlob {
  mimeType: string
  data: string
}

export interface WirePart {
  text?: string
  inlineData?: WireBlob
  functionCall?: { id: string; name: string; args: Record<string, unknown> }
  functionResponse?: { id: string; name: string; response: Record<string, unknown> }
  thoughtSignature?: string
}

export interface WireContent {
  role: "user" | "model"
  parts: Array<WirePart>
}

/** Replayed calls keep their signatures; `required` puts the sentinel for a missing one, `sentinel` for each. */
export type SignaturePolicy = "required" | "optional" | "sentinel"

const dataUrl = /^data:([^;,]+)[^,]*;base64,/i

const blobOf = (url: string): WireBlob | undefined => {
  const head = dataUrl.exec(url.slice(0, 200))
  if (head === null) return undefined
  const [whole, type = ""] = head
  const mimeType = type.toLowerCase()
  return { mimeType: mimeType === "image/jpg" ? "image/jpeg" : mimeType, data: url.slice(whole.length) }
}

const textParts = (content: string | ReadonlyArray<TextPart> | null): Array<WirePart> => {
  const texts = typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text)
  return texts.filter((text) => text !== "").map((text) => ({ text }))
}

const userPart = (part: Part): ReadonlyArray<WirePart> => {
  if (part.type === "text") return part.text === "" ? [] : [{ text: part.text }]
  const inlineData = blobOf(part.image_url.url)
  return inlineData === undefined ? [] : [{ inlineData }]
}

const userParts = (content: string | ReadonlyArray<Part>): Array<WirePart> => {
  const parts = typeof content === "string" ? textParts(content) : content.flatMap(userPart)
  return parts.length === 0 ? [{ text: "" }] : parts
}

const callPart = ({ function: { arguments: text, name }, id }: ToolCall): WirePart => ({
  functionCall: { id, name, args: parseArguments(text) }
})

const joined = (content: string | ReadonlyArray<TextPart>): string =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("")

export const isInline = (messages: ReadonlyArray<Message>): boolean =>
  messages.every(
    ({ content, role }) =>
      role !== "user" ||
      typeof content === "string" ||
      content.every((part) => part.type === "text" || blobOf(part.image_url.url) !== undefined)
  )

/** A conversation on this wire. A system's words stand apart, unless there are no others. */
export const encodeContents = (
  route: Route,
  messages: ReadonlyArray<Message>,
  policy: SignaturePolicy
): { readonly system: Array<WirePart>; readonly contents: Array<WireContent> } => {
  const system: Array<WirePart> = []
  const contents: Array<WireContent> = []
  const names = new Map<string, string>()
  const turn = messages.findLastIndex(({ role }) => role === "user")

  const signatureOf = (call: ToolCall, isFirst: boolean, isCurrent: boolean): string | undefined => {
    const own = policy === "sentinel" ? undefined : unseal(route, call.signature)
    return own ?? (isFirst && isCurrent && policy !== "optional" ? sentinel : undefined)
  }
  /** A model's calls follow at once what they answer, so what it said in several messages is one turn. */
  const model = (): WireContent => {
    const last = contents.at(-1)
    if (last?.role === "model") return last
    const content: WireContent = { role: "model", parts: [] }
    contents.push(content)
    return content
  }
  const results = (): WireContent => {
    const last = contents.at(-1)
    if (last?.parts.some(({ functionResponse }) => functionResponse !== undefined) === true) return last
    const content: WireContent = { role: "user", parts: [] }
    contents.push(content)
    return content
  }

  for (const [at, message] of messages.entries()) {
    switch (message.role) {
      case "system":
        system.push(...textParts(message.content))
        break
      case "user":
        contents.push({ role: "user", parts: userParts(message.content) })
        break
      case "tool": {
        const { tool_call_id: id } = message
        const response = { output: joined(message.content) }
        results().parts.push({ functionResponse: { id, name: names.get(id) ?? id, response } })
        break
      }
      default: {
        const texts = textParts(message.content)
        const calls = message.tool_calls ?? []
        if (texts.length + calls.length === 0) break
        const { parts } = model()
        parts.push(...texts)
        for (const call of calls) {
          names.set(call.id, call.function.name)
          const isFirst = parts.every(({ functionCall }) => functionCall === undefined)
          const thoughtSignature = signatureOf(call, isFirst, at > turn)
          parts.push({ ...callPart(call), ...(thoughtSignature && { thoughtSignature }) })
        }
      }
    }
  }
  return contents.length > 0 ? { system, contents } : { system: [], contents: [{ role: "user", parts: system }] }
}
