import { Effect } from "effect"
import { isServedBySandbox } from "../../services/catalog/CatalogRules.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { sandboxHeader } from "../AnswerHeaders.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import { loggedError, type WireError } from "../errors/ErrorMessages.ts"
import { alreadySent, chargeHeader, json } from "../HttpAnswer.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { makeTaskReader } from "./ChatTasks.ts"
import { makeSink } from "./Sse.ts"

const chatServices = Effect.gen(function* () {
  return {
    chat: yield* ChatCompletions,
    ids: yield* Ids,
    readTask: yield* makeTaskReader,
    clock: yield* Effect.clock
  }
})
type Services = Effect.Effect.Success<typeof chatServices>

export const chatEndpoints = Effect.fnUntraced(function* (dialects: ReadonlyArray<ChatDialect>) {
  const services = yield* chatServices
  return dialects.map(
    (dialect): Endpoint => ({
      path: dialect.path,
      surface: "chat",
      admitsWithHold: true,
      idHeader: dialect.idHeader,
      canReduceHold: dialect.canReduceHold,
      encodeError: dialect.encodeError,
      fieldNames: dialect.fieldNames,
      handle: (admission) => answerChat(services, dialect, admission)
    })
  )
})

/** Handles a chat request. Sends a stream itself, and returns any other response. */
const answerChat = Effect.fnUntraced(function* (
  { chat, clock, ids, readTask }: Services,
  dialect: ChatDialect,
  admission: Admission
) {
  const task = yield* readTask(dialect, admission)
  const { departure, headers, record, response } = admission
  const answerHead = {
    id: ids.prefixed(dialect.idPrefix),
    created: Math.floor(clock.unsafeCurrentTimeMillis() / 1000),
    model: task.model.id
  }
  const answerHeaders = () =>
    isServedBySandbox(record.summary.route, task.model.routes) ? { ...headers(), ...sandboxHeader } : headers()
  if (task.request.stream) {
    const encoder = dialect.encoder(answerHead, task.request)
    const onError = (error: Pick<WireError, "body" | "reason">) => {
      record.add({ type: "failed", error: loggedError(error, dialect.fieldNames) })
    }
    yield* chat.stream(task, makeSink({ response, headers: answerHeaders, encoder, departure, onError }))
    return alreadySent
  }
  const { answer, charge, usage } = yield* chat.complete(task)
  return json(200, dialect.encodeAnswer(answerHead, task.request, answer, usage, charge), {
    ...answerHeaders(),
    ...chargeHeader(charge)
  })
})
