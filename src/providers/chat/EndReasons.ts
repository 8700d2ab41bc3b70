import type { ChatEvent, FinishReason, Unread } from "../../domain/Chat.ts"
import { asFields } from "../client/Json.ts"

/**
 * What a host's word for the end of an answer means. `complete`: the model ended it, with calls or without. `unfinished`:
 * it can go on, in a way that no other wire has. `break`: the host gave up.
 */
type Ending = "complete" | "length" | "content_filter" | "unfinished" | "break"

/** Lower-case words; a word for a compound reason such as `content_filter: RECITATION` is what stands before the colon. */
type EndReasons = ReadonlyMap<string, Ending>

export const endReasons = (words: Readonly<Partial<Record<Ending, ReadonlyArray<string>>>>): EndReasons => {
  const endings = ["complete", "length", "content_filter", "unfinished", "break"] as const
  return new Map(endings.flatMap((ending) => (words[ending] ?? []).map((word) => [word, ending] as const)))
}

/** Reasons of hosts of any wire after a failure of their engine or network. */
export const brokenOff: ReadonlyArray<string> = [
  "error",
  "server_error",
  "internal_error",
  "network_error",
  "upstream_error",
  "connection_error",
  "timeout",
  "abort",
  "aborted",
  "cancelled",
  "canceled",
  "engine_overloaded",
  "overloaded",
  "insufficient_system_resource",
  "failed"
]

/** Reasons of Google's models, on its own API and on its OpenAI endpoint. */
export const google = {
  content_filter: [
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "model_armor",
    "jailbreak",
    "image_safety",
    "image_prohibited_content",
    "image_recitation"
  ],
  break: [
    "malformed_function_call",
    "unexpected_tool_call",
    "too_many_tool_calls",
    "missing_thought_signature",
    "malformed_response",
    "other",
    "language"
  ]
} as const

const maxDetail = 100

const isPrintable = /^[\x20-\x7e]+$/

/** Names a value for the log without the model's output: only short, plain words of a protocol are quoted. */
export const unreadOf = (part: Unread["part"], value: unknown): Unread => {
  const text = typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined
  const isWord = text !== undefined && text.length <= maxDetail && isPrintable.test(text)
  return { part, detail: isWord ? text : `a ${value === null ? "null" : typeof value} that is no short text` }
}

/** The types of parts, blocks or items that a wire does not know, each once. */
export const unknownTypes = (parts: ReadonlyArray<unknown>, known: ReadonlySet<unknown>): ReadonlyArray<Unread> => {
  const types = parts.map((part) => asFields(part).type).filter((type) => !known.has(type))
  return Array.from(new Set(types), (type) => unreadOf("block", type))
}

/** The same along a stream. */
export class UnreadBlocks {
  #types: Set<unknown> | undefined

  /** Takes the parts whose types are unknown. */
  take(parts: ReadonlyArray<unknown>, known: ReadonlySet<unknown>, out: Array<ChatEvent>): void {
    for (const part of parts) {
      const { type } = asFields(part)
      if (!known.has(type)) this.add(type, out)
    }
  }

  add(type: unknown, out: Array<ChatEvent>): void {
    if (this.#types?.has(type) === true) return
    this.#types ??= new Set()
    this.#types.add(type)
    out.push({ type: "unread", unread: unreadOf("block", type) })
  }
}

export interface End {
  /** Undefined: the model ended the answer. */
  readonly finish: FinishReason | undefined
  readonly isBreak: boolean
  readonly unread: Unread | undefined
}

const ends: Readonly<Record<Exclude<Ending, "unfinished">, End>> = {
  complete: { finish: undefined, isBreak: false, unread: undefined },
  length: { finish: "length", isBreak: false, unread: undefined },
  content_filter: { finish: "content_filter", isBreak: false, unread: undefined },
  break: { finish: undefined, isBreak: true, unread: undefined }
}

const find = (reasons: EndReasons, reason: string): Ending | undefined => {
  const word = reason.toLowerCase()
  const known = reasons.get(word)
  const colon = known === undefined ? word.indexOf(":") : -1
  return colon < 0 ? known : reasons.get(word.slice(0, colon).trim())
}

/** Reads the reason of an ended answer. A reason that is unknown never passes as the model's own end. */
export const readEnd = (reasons: EndReasons, reason: unknown): End => {
  if (reason === undefined || reason === null || reason === "") return ends.complete
  const ending = typeof reason === "string" ? find(reasons, reason) : undefined
  if (ending !== undefined && ending !== "unfinished") return ends[ending]
  return { finish: "length", isBreak: false, unread: unreadOf("stop_reason", reason) }
}
