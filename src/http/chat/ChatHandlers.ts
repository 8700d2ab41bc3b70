import { type Clock, Effect } from "effect"
import { isInSandbox } from "../../services/catalog/CatalogRules.ts"
import { ChatCompletions } from "../../services/chat/ChatCompletions.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { chargeHeader, json } from "../Answer.ts"
import type { Admission, Endpoint } from "../admission/Admission.ts"
import type { WireError } from "../errors/ErrorMessages.ts"
import { loggedError } from "../errors/FieldNames.ts"
import type { ChatDialect } from "./ChatDialect.ts"
import { makeTaskReader } from "./ChatTasks.ts"
import { makeSink } from "./Sse.ts"

/** One endpoint for each dialect. */
export const chatEndpoints = Effect.fnUntraced(function* (dialects: ReadonlyArray<ChatDialect>) {
  const services = {
    chat: yield* ChatCompletions,
    ids: yield* Ids,
    read: yield* makeTaskReader,
    clock: yield* Effect.clock
  }
  return dialects.map(
    (dialect): Endpoint => ({
      path: dialect.path,
      surface: "chat",
      admitsWithHold: true,
      idHeader: dialect.idHeader,
      hasFittedHold: dialect.hasFittedHold,
      encodeError: dialect.encodeError,
      fieldNames: dialect.fieldNames,
      handle: (admission) => answerChat(services, dialect, admission)
    })
  )
})

interface Services {
  readonly chat: typeof ChatCompletions.Service
  readonly ids: typeof Ids.Service
  readonly read: Effect.Effect.Success<typeof makeTaskReader>
  readonly clock: Clock.Clock
}

/** Undefined: the answer was sent as a stream. */
const answerChat = Effect.fnUntraced(function* (
  { chat, clock, ids, read }: Services,
  dialect: ChatDialect,
  admission: Admission
) {
  const task = yield* read(dialect, admission)
  const { departure, headers, record, response } = admission
  const name = {
    id: ids.prefixed(dialect.idPrefix),
    created: Math.floor(clock.unsafeCurrentTimeMillis() / 1000),
    model: task.model.id
  }
  const markedHeaders = () =>
    isInSandbox(record.summary.route, task.model.routes) ? { ...headers(), "x-gateway-sandbox": "true" } : headers()
  if (task.request.stream) {
    const encoder = dialect.encoder(name, task.request)
    const onError = (error: Pick<WireError, "body" | "reason">) => {
      record.add({ type: "failed", error: loggedError(error, dialect.fieldNames) })
    }
    yield* chat.stream(task, makeSink({ response, headers: markedHeaders, encoder, departure, onError }))
    return undefined
  }
  const { answer, charge, usage } = yield* chat.complete(task)
  return json(200, dialect.encodeAnswer(name, task.request, answer, usage, charge), {
    ...markedHeaders(),
    ...chargeHeader(charge)
  })
})
