import { Effect } from "effect"
import type { Failure } from "../../domain/Failure.ts"
import { isInSandbox } from "../../services/catalog/CatalogRules.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { flatMapEager } from "../../services/runtime/Fibers.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { type Answer, chargeHeader, json } from "../Answer.ts"
import type { AdmittedRequest, Endpoint } from "../admission/Endpoint.ts"
import type { BodyCutOff } from "../body/BodyReceiver.ts"
import type { WireError } from "../errors/ErrorMessages.ts"
import { loggedError } from "../errors/FieldNames.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { makeTaskReader } from "./ChatTasks.ts"
import { makeSink } from "./Sse.ts"

/** One endpoint for each dialect. */
export const chatEndpoints = Effect.fnUntraced(function* (dialects: ReadonlyArray<ChatDialect>) {
  const chat = yield* ChatCompletions
  const ids = yield* Ids
  const read = yield* makeTaskReader
  const clock = yield* Effect.clock

  const answer = (
    dialect: ChatDialect,
    admitted: AdmittedRequest
  ): Effect.Effect<Answer | undefined, Failure | BodyCutOff> =>
    flatMapEager(read(dialect, admitted), (task) => {
      const { departure, headers, record, response } = admitted
      const name = {
        id: ids.prefixed(dialect.idPrefix),
        created: Math.floor(clock.unsafeCurrentTimeMillis() / 1000),
        model: task.model.id
      }
      const markedHeaders = () =>
        isInSandbox(record.route, task.model.routes) ? { ...headers(), "x-gateway-sandbox": "true" } : headers()
      if (task.request.stream) {
        const encoder = dialect.encoder(name, task.request)
        const onError = (error: Pick<WireError, "body" | "reason">) => {
          record.error = loggedError(error, dialect.fieldNames)
        }
        return Effect.as(
          chat.stream(task, makeSink({ response, headers: markedHeaders, encoder, departure, onError })),
          undefined
        )
      }
      return Effect.map(chat.complete(task), ({ answer, charge, usage }) =>
        json(200, dialect.encodeAnswer(name, task.request, answer, usage, charge), {
          ...markedHeaders(),
          ...chargeHeader(charge)
        })
      )
    })

  return dialects.map(
    (dialect): Endpoint => ({
      path: dialect.path,
      surface: "chat",
      admitsWithHold: true,
      idHeader: dialect.idHeader,
      hasFittedHold: dialect.hasFittedHold,
      encodeError: dialect.encodeError,
      fieldNames: dialect.fieldNames,
      answer: (admitted) => answer(dialect, admitted)
    })
  )
})
