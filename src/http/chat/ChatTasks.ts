import { hash } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import { Effect, Either, Predicate } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import type { ChatRequest, Message } from "../../domain/Chat.ts"
import { applyRules } from "../../domain/ChatRules.ts"
import { type Failure, type InvalidRequest, ModelNotAllowed, type ModelNotFound } from "../../domain/Failure.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import type { ChatModel } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { priceIdOf } from "../../services/catalog/PriceLists.ts"
import type { ChatTask } from "../../services/chat/ChatCharging.ts"
import type { Admission } from "../admission/Admission.ts"
import { attribute } from "../admission/Attribution.ts"
import { type Document, Limits, readDocument } from "../body/BodyReader.ts"
import type { BodyCutOff } from "../body/BodyReceiver.ts"
import { isObject } from "../body/Guards.ts"
import { largeChat, largeRequest } from "./ChatBody.ts"
import type { ChatDialect } from "./ChatDialect.ts"

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

const withoutId = (metadata: unknown): unknown => {
  if (!isObject(metadata) || !("user_id" in metadata)) return metadata
  const { user_id: _, ...others } = metadata
  return Object.keys(others).length === 0 ? undefined : keepSource(metadata, others)
}

/** A native body would name the customer's users to the provider. */
const withoutEndUser = (request: ChatRequest): ChatRequest => {
  const { native } = request
  if (native === undefined) return request
  const { metadata: given, safety_identifier, user, ...others } = native.body
  const metadata = native.dialect === "messages" ? withoutId(given) : given
  if (metadata === given && user === undefined && safety_identifier === undefined) return request
  const body = metadata === undefined ? others : { ...others, metadata }
  return { ...request, native: { ...native, body: keepSource(native.body, body) } }
}

/** Decodes a body of a dialect, and applies the rules of its model. */
export const makeTaskDecoder = Effect.map(
  Catalog,
  (catalog) =>
    (dialect: ChatDialect, admission: Admission, document: Document): Effect.Effect<ChatTask, TaskRefusal> =>
      decodeTask(catalog, dialect, admission, document)
)

type TaskRefusal = InvalidRequest | ModelNotAllowed | ModelNotFound

const decodeTask = (
  catalog: typeof Catalog.Service,
  dialect: ChatDialect,
  admission: Admission,
  { bytes, value }: Document
): Effect.Effect<ChatTask, TaskRefusal> => {
  const { record, request } = admission
  const refusal = attribute(admission, value, dialect.namesUserInMetadata)
  if (refusal !== undefined) return refusal
  const decoded = dialect.decode(value, request.headers)
  if (Either.isLeft(decoded)) return decoded.left
  record.add({ type: "decoded", stream: decoded.right.stream })
  return bytes > largeRequest
    ? Effect.flatMap(largeChat(decoded.right), (asked) => taskFor(catalog, dialect, admission, asked, bytes))
    : taskFor(catalog, dialect, admission, decoded.right, bytes)
}

/** Fails where the model is unknown or not allowed, or the request breaks its rules. */
const taskFor = (
  { current }: typeof Catalog.Service,
  dialect: ChatDialect,
  { record, request: { headers }, reserveMemory }: Admission,
  asked: ChatRequest,
  bytes: number
): Effect.Effect<ChatTask, TaskRefusal> => {
  const { at, caller } = record.facts
  const model = current.findAt(asked.model, at)
  if (model?.surface !== "chat") {
    return unknownModel(current, asked.model, "chat", ({ id }) => mayUseModel(caller, id))
  }
  record.add({ type: "resolved", model: model.id, priceId: priceIdOf(model.pricing) })
  if (!mayUseModel(caller, model.id)) return new ModelNotAllowed({ model: model.id })
  return Either.map(applyRules(model, asked.model === model.id ? asked : { ...asked, model: model.id }), (ruled) => {
    const request = withoutEndUser(ruled)
    const conversation = conversationKeyOf(model, ruled, { org: caller.org, headers, bytes })
    return {
      model,
      request: conversation === undefined ? request : { ...request, conversation },
      record,
      reserveMemory,
      hasFittedHold: dialect.hasFittedHold || caller.hasFittedHold
    }
  })
}

export const makeTaskReader = Effect.gen(function* () {
  const limits = yield* Limits
  const decode = yield* makeTaskDecoder
  return (dialect: ChatDialect, admission: Admission): Effect.Effect<ChatTask, Failure | BodyCutOff> =>
    Effect.flatMap(readDocument(admission, limits.chatBodyBytes), (document) => decode(dialect, admission, document))
})
