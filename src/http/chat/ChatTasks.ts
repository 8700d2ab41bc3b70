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
import { attribute } from "../admission/RequestContext.ts"
import { type JsonBody, Limits, readJsonBody } from "../body/BodyReader.ts"
import type { BodyCutOff } from "../body/BodyReceiver.ts"
import { isObject } from "../body/Guards.ts"
import { markLarge, maxUnslicedBytes } from "./ChatBody.ts"
import type { ChatDialect } from "./ChatDialect.ts"

/** Providers cache only prompts of at least 1,024 tokens, and a token has about four bytes. */
const minCachedBytes = 4_096
const maxHashedLength = 4_096

/** Session headers that Codex, Claude Code and opencode send. */
const sessionHeaders = ["session-id", "session_id", "x-claude-code-session-id", "x-session-affinity"]

const readSessionHeader = (headers: IncomingHttpHeaders): string | undefined => {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (typeof value === "string" && value !== "") return value
  }
  return undefined
}

/** Claude Code sends its session in `metadata.user_id`, as `…_session_ID` or as JSON with `session_id`. */
const claudeCodeSession = /_session_([\w-]{8,})$|"session_id"\s*:\s*"([\w-]{8,})"/

const readSessionId = ({ native }: ChatRequest): string | undefined => {
  const metadata = native?.body["metadata"]
  const user = Predicate.isRecord(metadata) ? metadata["user_id"] : undefined
  if (typeof user !== "string" || user.length > maxHashedLength) return undefined
  const [, suffix, member] = claudeCodeSession.exec(user) ?? []
  return suffix ?? member
}

const takePrefix = (message: Message | undefined): string => {
  const content = message?.content ?? ""
  if (typeof content === "string") return content.slice(0, maxHashedLength)
  let text = ""
  for (const part of content) {
    if (text.length >= maxHashedLength) break
    if (part.type === "text") text += part.text.slice(0, maxHashedLength - text.length)
  }
  return text
}

const takeOpening = ({ messages }: ChatRequest): string => {
  const prefixOf = (role: Message["role"]) => takePrefix(messages.find((message) => message.role === role))
  return `${prefixOf("system")}\n${prefixOf("user")}`
}

/**
 * Returns the key by which the requests of a conversation use the same route. Returns undefined if the model has only one
 * route, or if the prompt is too short for a provider's cache.
 */
export const conversationKeyOf = (
  { id, routes }: ChatModel,
  request: ChatRequest,
  { bytes, headers, org }: { readonly bytes: number; readonly headers: IncomingHttpHeaders; readonly org: OrgId }
): string | undefined => {
  if (routes.length < 2) return undefined
  const clientKey = request.promptCacheKey || readSessionHeader(headers) || readSessionId(request)
  if (clientKey === undefined && bytes < minCachedBytes) return undefined
  return hash("sha256", `${org}\n${id}\n${clientKey?.slice(0, maxHashedLength) ?? takeOpening(request)}`, "base64")
}

const removeUserId = (metadata: unknown): unknown => {
  if (!isObject(metadata) || !("user_id" in metadata)) return metadata
  const { user_id: _, ...rest } = metadata
  return Object.keys(rest).length === 0 ? undefined : keepSource(metadata, rest)
}

/** Removes end-user ids from the native body, because providers must not receive them. */
const removeEndUser = (request: ChatRequest): ChatRequest => {
  const { native } = request
  if (native === undefined) return request
  const { metadata: clientMetadata, safety_identifier, user, ...rest } = native.body
  const metadata = native.dialect === "messages" ? removeUserId(clientMetadata) : clientMetadata
  if (metadata === clientMetadata && user === undefined && safety_identifier === undefined) return request
  const body = metadata === undefined ? rest : { ...rest, metadata }
  return { ...request, native: { ...native, body: keepSource(native.body, body) } }
}

/** Returns a function that decodes a dialect's body and checks it against the rules of its model. */
export const makeTaskDecoder = Effect.map(
  Catalog,
  (catalog) =>
    (dialect: ChatDialect, admission: Admission, body: JsonBody): Effect.Effect<ChatTask, TaskRefusal> =>
      decodeTask(catalog, dialect, admission, body)
)

type TaskRefusal = InvalidRequest | ModelNotAllowed | ModelNotFound

const decodeTask = (
  catalog: typeof Catalog.Service,
  dialect: ChatDialect,
  admission: Admission,
  { bytes, value }: JsonBody
): Effect.Effect<ChatTask, TaskRefusal> => {
  const refusal = attribute(admission, value, dialect.namesUserInMetadata)
  if (refusal !== undefined) return refusal
  const result = dialect.decode(value, admission.request.headers)
  if (Either.isLeft(result)) return result.left
  const request = result.right
  admission.record.add({ type: "decoded", stream: request.stream })
  return bytes > maxUnslicedBytes
    ? Effect.flatMap(markLarge(request), (largeRequest) => makeTask(catalog, dialect, admission, largeRequest, bytes))
    : makeTask(catalog, dialect, admission, request, bytes)
}

/** Fails if the model is unknown or not allowed, or if the request breaks a rule of the model. */
const makeTask = (
  { current }: typeof Catalog.Service,
  dialect: ChatDialect,
  { record, request: { headers }, reserveMemory }: Admission,
  request: ChatRequest,
  bytes: number
): Effect.Effect<ChatTask, TaskRefusal> => {
  const { at, caller } = record.facts
  const model = current.findAt(request.model, at, caller.discountPercent)
  if (model?.surface !== "chat") {
    return unknownModel(current, request.model, "chat", ({ id }) => mayUseModel(caller, id))
  }
  record.add({ type: "resolved", model: model.id, priceId: priceIdOf(model.pricing) })
  if (!mayUseModel(caller, model.id)) return new ModelNotAllowed({ model: model.id })
  const modelRequest = request.model === model.id ? request : { ...request, model: model.id }
  return Either.map(applyRules(model, modelRequest), (validRequest) => {
    const conversation = conversationKeyOf(model, validRequest, { org: caller.org, headers, bytes })
    const providerRequest = removeEndUser(validRequest)
    return {
      model,
      request: conversation === undefined ? providerRequest : { ...providerRequest, conversation },
      record,
      reserveMemory,
      canReduceHold: dialect.canReduceHold || caller.canReduceHold
    }
  })
}

export const makeTaskReader = Effect.gen(function* () {
  const limits = yield* Limits
  const decode = yield* makeTaskDecoder
  return (dialect: ChatDialect, admission: Admission): Effect.Effect<ChatTask, Failure | BodyCutOff> =>
    Effect.flatMap(readJsonBody(admission, limits.chatBodyBytes), (body) => decode(dialect, admission, body))
})
