import { hash } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Predicate } from "effect"
import type { ChatRequest, Message } from "../../domain/Chat.ts"
import type { ChatModel } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"

/** In bytes: providers cache no prompt of fewer than 1,024 tokens, which are about four bytes each. */
const minCached = 4_096
/** In characters of each text. */
const maxHashed = 4_096

/** Session headers that Codex, Claude Code and opencode send. */
const sessionHeaders = ["session-id", "session_id", "x-claude-code-session-id", "x-session-affinity"]

const headerOf = (headers: IncomingHttpHeaders): string | undefined => {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

/** In the `metadata.user_id` of Claude Code: `…_session_ID`, or JSON with `session_id`. Others' is a person. */
const session = /_session_([\w-]{8,})$|"session_id"\s*:\s*"([\w-]{8,})"/

const sessionIn = ({ native }: ChatRequest): string | undefined => {
  const metadata = native?.body["metadata"]
  const user = Predicate.isRecord(metadata) ? metadata["user_id"] : undefined
  if (typeof user !== "string" || user.length > maxHashed) return undefined
  const [, tail, member] = session.exec(user) ?? []
  return tail ?? member
}

const beginningOf = (message: Message | undefined): string => {
  const content = message?.content ?? ""
  if (typeof content === "string") return content.slice(0, maxHashed)
  let text = ""
  for (const part of content) {
    if (text.length >= maxHashed) break
    if (part.type === "text") text += part.text.slice(0, maxHashed - text.length)
  }
  return text
}

const openingOf = ({ messages }: ChatRequest): string => {
  const first = (role: Message["role"]) => beginningOf(messages.find((message) => message.role === role))
  return `${first("system")}\n${first("user")}`
}

/** Undefined where there is no choice of route, or nothing that a provider would have cached. */
export const conversationKeyOf = (
  { id, routes }: ChatModel,
  request: ChatRequest,
  { bytes, headers, org }: { readonly bytes: number; readonly headers: IncomingHttpHeaders; readonly org: OrgId }
): string | undefined => {
  if (routes.length < 2) return undefined
  const given = request.promptCacheKey || headerOf(headers) || sessionIn(request)
  if (given === undefined && bytes < minCached) return undefined
  return hash("sha256", `${org}\n${id}\n${given?.slice(0, maxHashed) ?? openingOf(request)}`, "base64")
}
