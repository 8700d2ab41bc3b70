import { Effect, Either } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { applyRules } from "../../domain/ChatRules.ts"
import { type Failure, type InvalidRequest, ModelNotFound } from "../../domain/Failure.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { isSandbox } from "../../services/catalog/CatalogRules.ts"
import type { ChatJob } from "../../services/chat/ChatCharging.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { type Answer, json } from "../Answer.ts"
import type { Admitted, Endpoint } from "../admission/Admission.ts"
import { Limits, readDocument } from "../body/Body.ts"
import type { BodyCutOff } from "../body/BodyBuffer.ts"
import { modelIn } from "../body/Fields.ts"
import { responses } from "../responses/ResponsesDialect.ts"
import { largeChat, largeRequest } from "./ChatBody.ts"
import { chatCompletions } from "./ChatDialect.ts"
import { conversationOf } from "./Conversation.ts"
import type { ChatDialect } from "./Dialect.ts"
import { makeSink } from "./Sse.ts"

const dialects: ReadonlyArray<ChatDialect> = [chatCompletions, responses]

/** One endpoint for each dialect. */
export const chatEndpoints = Effect.gen(function* () {
  const catalog = yield* Catalog
  const chat = yield* ChatCompletions
  const ids = yield* Ids
  const limits = yield* Limits
  const clock = yield* Effect.clock

  const jobOf = (
    dialect: ChatDialect,
    asked: ChatRequest,
    { record, request: { headers } }: Admitted,
    bytes: number
  ): Effect.Effect<ChatJob, InvalidRequest | ModelNotFound> => {
    const model = catalog.current.find(asked.model)
    if (model?.surface !== "chat") return new ModelNotFound({ model: asked.model, surface: "chat" })
    return Either.map(applyRules(model, asked), (request) => {
      const { fitHolds, org } = record.caller
      const conversation = conversationOf(model, request, { org, headers, bytes })
      return {
        model,
        request: conversation === undefined ? request : { ...request, conversation },
        record,
        fitsHold: dialect.fitsHold || fitHolds
      }
    })
  }

  const read = (dialect: ChatDialect, admitted: Admitted): Effect.Effect<ChatJob, Failure | BodyCutOff> =>
    Effect.flatMap(
      readDocument(admitted, limits.chatBodyBytes),
      ({ bytes, value }): Effect.Effect<ChatJob, InvalidRequest | ModelNotFound> => {
        const { record, request } = admitted
        record.model = modelIn(value)
        const decoded = dialect.decode(value, request.headers)
        if (Either.isLeft(decoded)) return decoded.left
        record.stream = decoded.right.stream
        return bytes > largeRequest
          ? Effect.flatMap(largeChat(decoded.right), (asked) => jobOf(dialect, asked, admitted, bytes))
          : jobOf(dialect, decoded.right, admitted, bytes)
      }
    )

  const answer = (dialect: ChatDialect, admitted: Admitted): Effect.Effect<Answer | undefined, Failure | BodyCutOff> =>
    Effect.flatMap(read(dialect, admitted), (job) => {
      const { departure, headers, record, response } = admitted
      const name = {
        id: ids.prefixed(dialect.idPrefix),
        created: Math.floor(clock.unsafeCurrentTimeMillis() / 1000),
        model: job.model.id
      }
      // Before any route has answered, the head is marked if only the sandbox could serve it.
      const marked = () =>
        (record.route === undefined ? job.model.routes.every(isSandbox) : isSandbox(record.route))
          ? { ...headers(), "x-gateway-sandbox": "true" }
          : headers()
      if (job.request.stream) {
        const encoder = dialect.encoder(name, job.request)
        return Effect.as(chat.stream(job, makeSink({ response, headers: marked, encoder, departure })), undefined)
      }
      return Effect.map(chat.complete(job), ({ answer, usage }) =>
        json(200, dialect.encodeAnswer(name, job.request, answer, usage), marked())
      )
    })

  return dialects.map(
    (dialect): Endpoint => ({
      path: dialect.path,
      surface: "chat",
      scope: "chat",
      admitsWithHold: true,
      fitsHold: dialect.fitsHold,
      encodeError: dialect.encodeError,
      answer: (admitted) => answer(dialect, admitted)
    })
  )
})
