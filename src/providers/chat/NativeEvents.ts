import { Predicate } from "effect"
import type { ChatRequest, NativeRequest } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Route } from "../../domain/Model.ts"
import type { Fields } from "../client/Json.ts"
import { cleanReason } from "../client/Reason.ts"
import type { ChatDecoder } from "./ChatStream.ts"

/** What of a host reaches clients of its own dialect. */
export interface NativeFields {
  /** Those that pass as they are: of an answer, and of an event. Others are cleaned of ids, keys and addresses. */
  readonly answerFields: ReadonlySet<string>
  readonly eventFields: ReadonlySet<string>
  /** The field of an event that holds an answer. */
  readonly answerIn: string
  /** An event that begins output of which the stream may show nothing. */
  readonly beginsHidden: (event: Fields) => boolean
  /** The answer that the events of a whole stream add up to. */
  readonly assemble: (events: ReadonlyArray<Fields>) => Fields
}

type Clean = (text: string) => string

/** Bounds the time that a host can take. */
const maxTexts = 100

const makeTextCleaner = (clean: Clean): Clean => {
  let left = maxTexts
  return (text) => (left-- > 0 ? clean(text) : "")
}

const cleanTexts = (value: unknown, clean: Clean): unknown => {
  if (typeof value === "string") return clean(value)
  if (Array.isArray(value))
    return keepSource(
      value,
      value.map((item) => cleanTexts(item, clean))
    )
  if (!Predicate.isRecord(value)) return value
  const members = Object.entries(value).map(([name, member]) => [clean(name), cleanTexts(member, clean)] as const)
  return keepSource(value, Object.fromEntries(members))
}

const cleanUnknown = (fields: Fields, known: ReadonlySet<string>, clean: Clean): Fields => {
  if (Object.keys(fields).every((name) => known.has(name))) return fields
  const cleanText = makeTextCleaner(clean)
  const cleaned = Object.entries(fields).map(([name, value]) =>
    known.has(name) ? ([name, value] as const) : ([cleanText(name), cleanTexts(value, cleanText)] as const)
  )
  return keepSource(fields, Object.fromEntries(cleaned))
}

interface Call {
  readonly route: Route
  readonly request: Pick<ChatRequest, "model">
  readonly native?: NativeRequest | undefined
}

const cleanerOf =
  ({ request, route }: Call): Clean =>
  (text) =>
    cleanReason(text, route, request.model)

const cleanEvent = (event: Fields, { answerFields, answerIn, eventFields }: NativeFields, clean: Clean): Fields => {
  const cleaned = cleanUnknown(event, eventFields, clean)
  const answer = cleaned[answerIn]
  return Predicate.isRecord(answer)
    ? keepSource(event, { ...cleaned, [answerIn]: cleanUnknown(answer, answerFields, clean) })
    : cleaned
}

/** The host's whole answer to a request in its own dialect, cleaned. */
export const keepNative = (call: Call, format: NativeFields | undefined, answer: Fields) =>
  call.native && format ? { native: cleanUnknown(answer, format.answerFields, cleanerOf(call)) } : undefined

/** Puts each event of the host, cleaned, before what it says in our terms; those of a failure are dropped. */
export const withNativeEvents = (decoder: ChatDecoder, format: NativeFields, call: Call): ChatDecoder => ({
  ...decoder,
  isNative: true,
  take: (event, out) => {
    const at = out.length
    const reached = decoder.take(event, out)
    // Every event of these wires has a type: others are heartbeats.
    if (typeof event.type === "string" && (reached === undefined || reached === "whole")) {
      const kept = cleanEvent(event, format, cleanerOf(call))
      out.splice(at, 0, { type: "native", event: kept, ...(format.beginsHidden(event) && { isOutput: true }) })
    }
    return reached
  }
})

/** Keeps the events that a decoder takes. */
export const keepEvents = (decoder: ChatDecoder, kept: Array<Fields>): ChatDecoder => ({
  ...decoder,
  isNative: true,
  take: (event, out) => {
    kept.push(event)
    return decoder.take(event, out)
  }
})
