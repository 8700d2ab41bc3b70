import { Context, Effect, Layer, Option } from "effect"
import { hasImage } from "../../domain/ChatRules.ts"
import type { GatewayBusy, InvalidRequest, RoutingFailure, SettleFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { HoldRefused, Ledger } from "../ledger/Ledger.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import * as Deadlines from "../runtime/Deadlines.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type ChargedAnswer, type ChatTask, chargingServices, measure, settle, withHeldTask } from "./ChatCharging.ts"
import { type ChatServices, type ChatSink, stream } from "./ChatStream.ts"
import { countRequest, fitToCap, toReceived } from "./ChatUsage.ts"
import { preparePictures } from "./ImageInlining.ts"
import type { TokenCounter } from "./TokenCounter.ts"

type ChatFailure = GatewayBusy | HoldRefused | InvalidRequest | RoutingFailure | SettleFailed

export class ChatCompletions extends Context.Tag("gateway/ChatCompletions")<
  ChatCompletions,
  {
    readonly complete: (task: ChatTask) => Effect.Effect<ChargedAnswer, ChatFailure>
    /** Fails only before the head is sent; after that every outcome is in the stream and the record. */
    readonly stream: (task: ChatTask, sink: ChatSink) => Effect.Effect<void, ChatFailure>
    /** What `complete` and `stream` would hold; nothing is held or asked. */
    readonly quote: (task: Pick<ChatTask, "model" | "request">) => Effect.Effect<Pricing.ChatQuote, InvalidRequest>
    /** Counts the prompt only; free. */
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
  withHeldTask(services, task, (held, hold) => answer(services, held, hold))

/** A stop interrupts only the fetching of pictures and the provider's call: what was answered is charged. */
const answer = Effect.fnUntraced(function* (services: ChatServices, task: ChatTask, hold: Hold) {
  const { clock, failpoint, router, tokens } = services
  const { model, record } = task
  yield* failpoint.reach("after_hold")
  const prepared = hasImage(task.request) ? yield* Effect.interruptible(preparePictures(services, task)) : task
  const { answer, route } = yield* Effect.interruptible(
    router.complete(model, prepared.request, record.attempts, prepared.since)
  )
  record.add({ type: "answered", route })
  const measured = yield* measure(services, task, toReceived(answer), route)
  // What may fail comes before the charge.
  const fitted = yield* fitToCap(tokens, task, answer, measured)
  record.add({ type: "answered", at: Monotonic.millisOf(clock) })
  const charge = yield* settle(services, task, hold, measured, route.cost)
  return { answer: fitted, usage: measured.billed, charge }
})

const countTokens = Effect.fnUntraced(function* (
  { router, tokens }: ChatServices,
  { model, request }: Pick<ChatTask, "model" | "request">
) {
  const counted = yield* router.countTokens(model, request)
  return Option.isSome(counted)
    ? Math.min(counted.value, Pricing.usageLimit(model, request))
    : yield* countRequest(tokens, model, request)
})
