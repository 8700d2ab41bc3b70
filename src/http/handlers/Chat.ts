import { Effect } from "effect"
import { applyRules } from "../../domain/ChatRules.ts"
import { ModelNotFound } from "../../domain/Failure.ts"
import { Catalog } from "../../services/Catalog.ts"
import { ChatCompletions } from "../../services/ChatCompletions.ts"
import { isSandbox } from "../../services/catalog/Rules.ts"
import { Ids } from "../../services/Ids.ts"
import * as Monotonic from "../../services/Monotonic.ts"
import type { Admitted, Endpoint } from "../Admission.ts"
import { json } from "../Answer.ts"
import { readDocument } from "../Body.ts"
import { completionJson, SseEncoder } from "../ChatAnswer.ts"
import { decodeChatBody } from "../ChatBody.ts"
import { modelIn } from "../Fields.ts"
import { largeChat, largeRequest } from "../LargeChat.ts"
import { Limits } from "../Limits.ts"
import { makeSink } from "../Sse.ts"

/** `POST /v1/chat/completions`. */
export const chatEndpoint = Effect.gen(function* () {
  const catalog = yield* Catalog
  const chat = yield* ChatCompletions
  const ids = yield* Ids
  const limits = yield* Limits
  const clock = yield* Effect.clock

  const read = Effect.fnUntraced(function* (admitted: Admitted) {
    const { record } = admitted
    const { bytes, value } = yield* readDocument(admitted, limits.chatBodyBytes)
    record.model = modelIn(value)
    const decoded = yield* decodeChatBody(value)
    const asked = bytes > largeRequest ? yield* largeChat(decoded) : decoded
    record.stream = asked.stream
    const model = catalog.find(asked.model)
    if (model?.surface !== "chat") return yield* new ModelNotFound({ model: asked.model, surface: "chat" })
    return { model, request: yield* applyRules(model, asked), record }
  })

  const answer = Effect.fnUntraced(function* (admitted: Admitted) {
    const { departure, headers, record, response } = admitted
    const job = yield* read(admitted)
    const name = {
      id: ids.prefixed("chatcmpl"),
      created: Math.floor(clock.unsafeCurrentTimeMillis() / 1000),
      model: job.model.id
    }
    // A head that goes out before any route has answered is the sandbox's if nothing else could serve it.
    const marked = () =>
      (record.route === undefined ? job.model.routes.every(isSandbox) : isSandbox(record.route))
        ? { ...headers(), "x-gateway-sandbox": "true" }
        : headers()
    if (job.request.stream) {
      const encoder = new SseEncoder({ ...name, includeUsage: job.request.includeUsage })
      yield* chat.stream(job, makeSink({ response, headers: marked, encoder, departure }))
      return undefined
    }
    const { answer, usage } = yield* chat.complete(job)
    record.firstByteAt ??= Monotonic.millisOf(clock)
    return json(200, completionJson({ ...name, answer, usage }), marked())
  })

  return { surface: "chat", scope: "chat", admitsWithHold: true, answer } satisfies Endpoint
})
