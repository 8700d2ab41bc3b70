import type { ChatEvent, FinishReason, UnknownPart } from "../../domain/Chat.ts"
import { asFields } from "../client/JsonFields.ts"

/**
 * The meaning of a provider's stop reason. `complete`: the model ended the answer, with or without calls. `unfinished`:
 * the answer can continue in a way that only this wire format supports. `failure`: the provider gave up.
 */
type Ending = "complete" | "length" | "content_filter" | "unfinished" | "failure"

/**
 * Endings by stop reason, in lower case. A compound reason such as `content_filter: RECITATION` is found by the text
 * before the colon.
 */
type EndReasons = ReadonlyMap<string, Ending>

export const endReasons = (words: Readonly<Partial<Record<Ending, ReadonlyArray<string>>>>): EndReasons => {
  const endings = ["complete", "length", "content_filter", "unfinished", "failure"] as const
  return new Map(endings.flatMap((ending) => (words[ending] ?? []).map((word) => [word, ending] as const)))
}

/** Stop reasons after a failure of the provider's engine or network, in any wire format. */
export const failureReasons: ReadonlyArray<string> = [
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

/** Stop reasons of Google's models, on its own API and its OpenAI endpoint. */
export const googleReasons = {
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
  failure: [
    "malformed_function_call",
    "unexpected_tool_call",
    "too_many_tool_calls",
    "missing_thought_signature",
    "malformed_response",
    "other",
    "language"
  ]
} as const

const maxDetailLength = 100

const printablePattern = /^[\x20-\x7e]+$/

/** Describes a value for the log. Only short, printable texts are quoted, because others may be model output. */
export const toUnread = (part: UnknownPart["part"], value: unknown): UnknownPart => {
  const text = typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined
  const isQuotable = text !== undefined && text.length <= maxDetailLength && printablePattern.test(text)
  return { part, detail: isQuotable ? text : `a ${value === null ? "null" : typeof value} that is not a short text` }
}

/** Returns each unknown type of parts, blocks or items once. */
export const unknownTypes = (
  parts: ReadonlyArray<unknown>,
  knownTypes: ReadonlySet<unknown>
): ReadonlyArray<UnknownPart> => {
  const types = parts.map((part) => asFields(part).type).filter((type) => !knownTypes.has(type))
  return Array.from(new Set(types), (type) => toUnread("block", type))
}

/** Reports each unknown type of a stream once. */
export class UnreadBlocks {
  #types: Set<unknown> | undefined

  take(parts: ReadonlyArray<unknown>, knownTypes: ReadonlySet<unknown>, out: Array<ChatEvent>): void {
    for (const part of parts) {
      const { type } = asFields(part)
      if (!knownTypes.has(type)) this.add(type, out)
    }
  }

  add(type: unknown, out: Array<ChatEvent>): void {
    if (this.#types?.has(type) === true) return
    this.#types ??= new Set()
    this.#types.add(type)
    out.push({ type: "unread", unread: toUnread("block", type) })
  }
}

export interface End {
  /** Undefined if the model ended the answer. */
  readonly finish: FinishReason | undefined
  readonly isFailure: boolean
  readonly unread: UnknownPart | undefined
}

const ends: Readonly<Record<Exclude<Ending, "unfinished">, End>> = {
  complete: { finish: undefined, isFailure: false, unread: undefined },
  length: { finish: "length", isFailure: false, unread: undefined },
  content_filter: { finish: "content_filter", isFailure: false, unread: undefined },
  failure: { finish: undefined, isFailure: true, unread: undefined }
}

const findEnding = (reasons: EndReasons, reason: string): Ending | undefined => {
  const word = reason.toLowerCase()
  const ending = reasons.get(word)
  const colon = ending === undefined ? word.indexOf(":") : -1
  return colon < 0 ? ending : reasons.get(word.slice(0, colon).trim())
}

/** Reads a stop reason. An unknown or unfinished one becomes `length` with a note for the log, never `stop`. */
export const readEnd = (reasons: EndReasons, reason: unknown): End => {
  if (reason === undefined || reason === null || reason === "") return ends.complete
  const ending = typeof reason === "string" ? findEnding(reasons, reason) : undefined
  if (ending !== undefined && ending !== "unfinished") return ends[ending]
  return { finish: "length", isFailure: false, unread: toUnread("stop_reason", reason) }
}
