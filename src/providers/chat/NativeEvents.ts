import { Predicate } from "effect"
import type { ChatRequest, NativeRequest } from "../../domain/Chat.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Route } from "../../domain/Model.ts"
import { cleanReason } from "../client/Classification.ts"
import type { Fields } from "../client/JsonFields.ts"
import type { ChatDecoder } from "./WireStream.ts"

/** How a provider's answers and events reach clients of the same dialect. */
export interface NativeFields {
  /** Fields that pass unchanged. All others are cleaned of ids, keys and addresses. */
  readonly answerFields: ReadonlySet<string>
  readonly eventFields: ReadonlySet<string>
  /** The field of an event that contains an answer. */
  readonly answerField: string
  /** Whether an event starts output that might not appear in the stream, such as reasoning. */
  readonly startsHiddenOutput: (event: Fields) => boolean
  /** Builds the complete answer from all events of a stream. */
  readonly assemble: (events: ReadonlyArray<Fields>) => Fields
}

type Clean = (text: string) => string

/** Cleaning takes time, so only this many texts are cleaned. Further ones become empty. */
const maxTexts = 100

const makeTextCleaner = (clean: Clean): Clean => {
  let budget = maxTexts
  return (text) => (budget-- > 0 ? clean(text) : "")
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

const cleanUnknown = (fields: Fields, allowedFields: ReadonlySet<string>, clean: Clean): Fields => {
  if (Object.keys(fields).every((name) => allowedFields.has(name))) return fields
  const cleanText = makeTextCleaner(clean)
  const cleaned = Object.entries(fields).map(([name, value]) =>
    allowedFields.has(name) ? ([name, value] as const) : ([cleanText(name), cleanTexts(value, cleanText)] as const)
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

const cleanEvent = (event: Fields, { answerFields, answerField, eventFields }: NativeFields, clean: Clean): Fields => {
  const cleaned = cleanUnknown(event, eventFields, clean)
  const answer = cleaned[answerField]
  return Predicate.isRecord(answer)
    ? keepSource(event, { ...cleaned, [answerField]: cleanUnknown(answer, answerFields, clean) })
    : cleaned
}

/** Returns the provider's cleaned answer to a native request. */
export const toNativeAnswer = (call: Call, format: NativeFields | undefined, answer: Fields) =>
  call.native && format ? { native: cleanUnknown(answer, format.answerFields, cleanerOf(call)) } : undefined

/** Returns a decoder that emits each provider event, cleaned, before the events decoded from it. Drops failing events. */
export const withNativeEvents = (decoder: ChatDecoder, format: NativeFields, call: Call): ChatDecoder => ({
  ...decoder,
  isNative: true,
  take: (event, out) => {
    const at = out.length
    const outcome = decoder.take(event, out)
    // Every event of these wire formats has a type. Others are heartbeats.
    if (typeof event.type === "string" && (outcome === undefined || outcome === "complete")) {
      const nativeEvent = cleanEvent(event, format, cleanerOf(call))
      out.splice(at, 0, {
        type: "native",
        event: nativeEvent,
        ...(format.startsHiddenOutput(event) && { isOutput: true })
      })
    }
    return outcome
  }
})

export const recordEvents = (decoder: ChatDecoder, events: Array<Fields>): ChatDecoder => ({
  ...decoder,
  isNative: true,
  take: (event, out) => {
    events.push(event)
    return decoder.take(event, out)
  }
})
