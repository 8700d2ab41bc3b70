import { Effect, Either } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import type { ChatRequest } from "../../domain/Chat.ts"
import { applyRules } from "../../domain/ChatRules.ts"
import { type Failure, type InvalidRequest, ModelNotAllowed, type ModelNotFound } from "../../domain/Failure.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { priceIdOf } from "../../services/catalog/PriceLists.ts"
import type { ChatTask } from "../../services/chat/ChatCharging.ts"
import { flatMapEager } from "../../services/runtime/Fibers.ts"
import { attribute } from "../admission/Attribution.ts"
import type { AdmittedRequest } from "../admission/Endpoint.ts"
import type { BodyCutOff } from "../body/BodyBuffer.ts"
import { Limits, readDocument } from "../body/BodyReader.ts"
import { modelIn } from "../body/Guards.ts"
import { largeChat, largeRequest } from "./ChatBody.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { conversationKeyOf } from "./ConversationKey.ts"
import { withoutEndUser } from "./EndUser.ts"

interface Document {
  readonly value: unknown
  /** Of its JSON. */
  readonly bytes: number
}

/** Decodes a body of a dialect, and applies the rules of its model. */
export const makeTaskDecoder = Effect.gen(function* () {
  const catalog = yield* Catalog

  const toTask = (
    { hasFittedHold }: Pick<ChatDialect, "hasFittedHold">,
    asked: ChatRequest,
    { record, request: { headers } }: AdmittedRequest,
    bytes: number
  ): Effect.Effect<ChatTask, InvalidRequest | ModelNotAllowed | ModelNotFound> => {
    const model = catalog.current.findAt(asked.model, record.at)
    if (model?.surface !== "chat") {
      return unknownModel(catalog.current, asked.model, "chat", ({ id }) => mayUseModel(record.caller, id))
    }
    record.model = model.id
    record.priceId = priceIdOf(model.pricing)
    if (!mayUseModel(record.caller, model.id)) return new ModelNotAllowed({ model: model.id })
    const ruled = applyRules(model, asked.model === model.id ? asked : { ...asked, model: model.id })
    if (Either.isLeft(ruled)) return ruled.left
    const request = withoutEndUser(ruled.right)
    const { hasFittedHolds, org } = record.caller
    const conversation = conversationKeyOf(model, ruled.right, { org, headers, bytes })
    return Effect.succeed({
      model,
      request: conversation === undefined ? request : { ...request, conversation },
      record,
      hasFittedHold: hasFittedHold || hasFittedHolds
    })
  }

  return (
    dialect: ChatDialect,
    admitted: AdmittedRequest,
    { bytes, value }: Document
  ): Effect.Effect<ChatTask, InvalidRequest | ModelNotAllowed | ModelNotFound> => {
    const { record, request } = admitted
    record.model = modelIn(value)
    const refusal = attribute(admitted, value, dialect.namesUserInMetadata)
    if (refusal !== undefined) return refusal
    const decoded = dialect.decode(value, request.headers)
    if (Either.isLeft(decoded)) return decoded.left
    record.stream = decoded.right.stream
    return bytes > largeRequest
      ? Effect.flatMap(largeChat(decoded.right), (asked) => toTask(dialect, asked, admitted, bytes))
      : toTask(dialect, decoded.right, admitted, bytes)
  }
})

export const makeTaskReader = Effect.gen(function* () {
  const limits = yield* Limits
  const decode = yield* makeTaskDecoder
  return (dialect: ChatDialect, admitted: AdmittedRequest): Effect.Effect<ChatTask, Failure | BodyCutOff> =>
    flatMapEager(readDocument(admitted, limits.chatBodyBytes), (document) => decode(dialect, admitted, document))
})
