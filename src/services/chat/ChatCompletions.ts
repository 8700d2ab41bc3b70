import { Context, Effect, Layer, Option } from "effect"
import { hasImage } from "../../domain/ChatRules.ts"
import type { GatewayBusy, InvalidRequest, RoutingFailure, SettleFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { HoldRefused, Ledger } from "../ledger/Ledger.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import * as Deadlines from "../runtime/Deadlines.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { type ChargedAnswer, type ChatTask, chargingServices, measure, settle, withHeldTask } from "./ChatCharging.ts"
import { type ChatServices, type ChatSink, stream } from "./ChatStream.ts"
import { countRequest, toReceived, truncateToCap } from "./ChatUsage.ts"
import { prepareImages } from "./MessageImages.ts"
import type { TokenCounter } from "./TokenCounter.ts"

type ChatFailure = GatewayBusy | HoldRefused | InvalidRequest | RoutingFailure | SettleFailed

export class ChatCompletions extends Context.Tag("gateway/ChatCompletions")<
  ChatCompletions,
  {
    readonly complete: (task: ChatTask) => Effect.Effect<ChargedAnswer, ChatFailure>
    /** Fails only before the response head is sent. Later outcomes are in the stream and the record. */
    readonly stream: (task: ChatTask, sink: ChatSink) => Effect.Effect<void, ChatFailure>
    /** Returns the price of the hold that `complete` and `stream` would place. */
    readonly quote: (task: Pick<ChatTask, "model" | "request">) => Effect.Effect<Pricing.ChatQuote, InvalidRequest>
    /** Returns the token count of the prompt. Free of charge. */
    readonly countTokens: (task: Pick<ChatTask, "model" | "request">) => Effect.Effect<number>
  }
>() {
  static readonly layer: Layer.Layer<ChatCompletions, never, Ledger | ProviderRouter | ReferenceImages | TokenCounter> =
    Layer.scoped(
      ChatCompletions,
      Effect.gen(function* () {
        const router = yield* ProviderRouter
        const services: ChatServices = {
          ...(yield* chargingServices),
          router,
          references: yield* ReferenceImages,
          deadlines: yield* Deadlines.make,
          requestMillis: yield* router.requestTimeoutMillis
        }
        return ChatCompletions.of({
          complete: (task) => complete(services, task),
          stream: (task, sink) => stream(services, task, sink),
          quote: ({ model, request }) =>
            Effect.map(router.admit(model, request), () => Pricing.quoteChat(model, request)),
          countTokens: (task) => countTokens(services, task)
        })
      })
    )
}

const complete = (services: ChatServices, task: ChatTask) =>
  withHeldTask(services, task, (heldTask, hold) => answer(services, heldTask, hold))

/** Shutdown interrupts only image fetches and the provider's call. An answer that has arrived is charged. */
const answer = Effect.fnUntraced(function* (services: ChatServices, task: ChatTask, hold: Hold) {
  const { clock, failpoint, router, tokens } = services
  const { model, record } = task
  yield* failpoint.reach("after_hold")
  const preparedTask = hasImage(task.request) ? yield* Effect.interruptible(prepareImages(services, task)) : task
  const { answer, route } = yield* router.complete(model, preparedTask.request, record.attempts, preparedTask.since)
  record.add({ type: "answered", route })
  const measurement = yield* measure(services, task, toReceived(answer), route)
  // Truncates before the charge, because the truncation may fail.
  const truncatedAnswer = yield* truncateToCap(tokens, task, answer, measurement)
  record.add({ type: "answered", at: monotonicMillisOf(clock) })
  const charge = yield* settle(services, task, hold, measurement, route.cost)
  return { answer: truncatedAnswer, usage: measurement.billed, charge }
})

const countTokens = Effect.fnUntraced(function* (
  { router, tokens }: ChatServices,
  { model, request }: Pick<ChatTask, "model" | "request">
) {
  const count = yield* router.countTokens(model, request)
  return Option.isSome(count)
    ? Math.min(count.value, Pricing.usageLimit(model, request))
    : yield* countRequest(tokens, model, request)
})
