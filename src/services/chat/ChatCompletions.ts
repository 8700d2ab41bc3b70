import { Cause, Context, Effect, Either, Exit, Layer, Option } from "effect"
import type { ChatEvent, FinishReason, Unread, Usage } from "../../domain/Chat.ts"
import { hasImage } from "../../domain/ChatRules.ts"
import {
  Aborted,
  type GatewayBusy,
  type InvalidRequest,
  type RateLimited,
  type RoutingFailure,
  type SettleFailed,
  UpstreamFailed
} from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Route } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { HoldRefused } from "../ledger/HoldPlacement.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import type { StreamClient } from "../routing/RoutedStream.ts"
import type { ClientDeparture } from "../runtime/ClientDeparture.ts"
import * as Deadlines from "../runtime/Deadlines.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { flatMapEager } from "../runtime/Fibers.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type ChargedAnswer, type ChatTask, makeChatCharging } from "./ChatCharging.ts"
import { countRequest, fitToCap, isEmptyRefusal, type Received, toReceived } from "./ChatUsage.ts"
import { type PreparedRequest, prepareImages } from "./ImageInlining.ts"
import { TokenCounter } from "./TokenCounter.ts"

/** Never fails: a client that left shows in `departure`. */
export interface ChatSink extends StreamClient {
  /** Sends the head once, then keep-alives while nothing is written. */
  readonly open: Effect.Effect<void>
  /** From then on an error can only be a chunk. */
  readonly isOpen: Effect.Effect<boolean>
  /** Writes at once; the effect waits until the client can take more. */
  readonly write: (events: ReadonlyArray<ChatEvent>) => Effect.Effect<void>
  readonly finish: (usage: Usage, charge: NanoUsd) => Effect.Effect<void>
  readonly fail: (failure: RoutingFailure | SettleFailed | Aborted) => Effect.Effect<void>
  readonly departure: ClientDeparture
}

/** More than any model writes or any hold covers. */
const maxCharacters = 16_000_000

/** For the count if the stream ends early or its provider reports nothing. */
export class StreamOutput {
  started = false
  route: Route | undefined
  isNative = false
  #usage: Usage | undefined
  #isCounted = false
  #finish: FinishReason | undefined
  #isUnbilled = false
  #unread: Array<Unread> | undefined
  #length = 0
  #shown: number | undefined
  readonly #pieces: Array<string> = []

  take(events: ReadonlyArray<ChatEvent>): void {
    this.started = true
    for (const event of events) {
      if (event.type === "content" || event.type === "reasoning") this.#keep(event.text)
      else if (event.type === "tool_call") this.#keep((event.name ?? "") + event.arguments)
      else if (event.type === "usage") {
        this.#usage = event.usage
        // A host that has counted no reasoning yet may count it at the end.
        this.#isCounted = event.isPartial === true && event.usage.reasoning > 0
      } else if (event.type === "native") this.isNative = true
      else if (event.type === "finish") {
        this.#finish = event.reason
        this.#isUnbilled = event.isUnbilled === true
      } else if (event.type === "unread") (this.#unread ??= []).push(event.unread)
    }
  }

  /** False in the middle of an answer whose host counts along, and before its first output. */
  get awaitsUsage(): boolean {
    return this.started && !this.#isCounted
  }

  /** The client gets nothing of what is taken from then on. */
  leave(): void {
    if (this.started) this.#shown = this.#pieces.length
  }

  received(): Received {
    return {
      reported: this.#usage,
      produced: this.#pieces.join(""),
      isNative: this.isNative,
      isEmptyRefusal: isEmptyRefusal(this.#finish, this.#length),
      isUnbilled: this.#isUnbilled,
      unread: this.#unread ?? []
    }
  }

  /** What was received for the client, of a stream that ends without it. */
  receivedForClient(): Received {
    return { ...this.received(), produced: this.#pieces.slice(0, this.#shown).join(""), isCut: true }
  }

  #keep(text: string): void {
    this.#length += text.length
    if (this.#length <= maxCharacters) this.#pieces.push(text)
  }
}

type ChatFailure = GatewayBusy | HoldRefused | InvalidRequest | RateLimited | RoutingFailure | SettleFailed

const headAfterMillis = 25_000
/** Without its client. */
const readOnMillis = 2_000

const asIs = ({ request, since }: ChatTask): PreparedRequest => ({ request, since })

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
  static readonly layer = Layer.scoped(
    ChatCompletions,
    Effect.gen(function* () {
      const ledger = yield* Ledger
      const router = yield* ProviderRouter
      const tokens = yield* TokenCounter
      const failpoint = yield* Failpoint
      const references = yield* ReferenceImages
      const deadlines = yield* Deadlines.make
      const clock = yield* Effect.clock
      const { withHold, measure, settle, writeOff } = yield* makeChatCharging

      const prepareRequest = ({ model, record, request, since }: ChatTask) =>
        Effect.map(
          Effect.flatMap(router.inlines(model, request), (inline) =>
            prepareImages(references, request, inline, record.reserveMemory)
          ),
          (prepared): PreparedRequest => (since === undefined ? prepared : { ...prepared, since })
        )

      /** Undefined for a client that leaves meanwhile. */
      const prepareWhileConnected = (task: ChatTask, departure: ClientDeparture) =>
        Effect.flatMap(Effect.interruptible(departure.interrupts(prepareRequest(task))), (exit) =>
          departure.isOver && Exit.isInterrupted(exit) ? Effect.succeed(undefined) : exit
        )

      const complete = (task: ChatTask) =>
        flatMapEager(router.admit(task.model, task.request), () =>
          withHold(task, (held, task) => completeHeld(task, held))
        )

      const completeHeld = (task: ChatTask, held: Hold) => {
        const { model, record, request } = task
        const preparing = hasImage(request) ? Effect.interruptible(prepareRequest(task)) : Effect.succeed(asIs(task))
        return flatMapEager(preparing, (prepared) =>
          Effect.flatMap(
            Effect.interruptible(router.complete(model, prepared.request, record.attempts, prepared.since)),
            ({ answer, route }) => {
              record.route = route
              return flatMapEager(measure(task, toReceived(answer)), (measured) =>
                // What may fail comes before the charge.
                flatMapEager(fitToCap(tokens, task, answer, measured), (fitted) => {
                  record.firstByteAt = Monotonic.millisOf(clock)
                  return Effect.map(settle(task, held, measured, route.cost), (charge) => ({
                    answer: fitted,
                    usage: measured.billed,
                    charge
                  }))
                })
              )
            }
          )
        )
      }

      const pumpStream = Effect.fnUntraced(function* (
        { model, record }: ChatTask,
        { request, since }: PreparedRequest,
        sink: ChatSink,
        output: StreamOutput
      ) {
        const openLate = deadlines.schedule(Monotonic.millisOf(clock) + headAfterMillis, () =>
          Effect.runSync(sink.open)
        )
        const routing = router.stream(model, request, record.attempts, { since, client: sink })
        const routed = yield* Effect.onExit(routing, () => Effect.sync(openLate))
        record.route = routed.route
        output.route = routed.route
        record.firstByteAt = Monotonic.millisOf(clock)
        output.take(routed.first)
        yield* sink.open
        yield* sink.write(routed.first)
        yield* failpoint.reach("mid_stream")
        let writing = Effect.void
        const rest = Effect.whileLoop({
          while: () => true,
          body: (): Effect.Effect<ReadonlyArray<ChatEvent> | void, Effect.Effect.Error<typeof routed.pull>> => {
            const next = writing === Effect.void ? routed.pull : Effect.asVoid(writing)
            writing = Effect.void
            return next
          },
          step: (events) => {
            if (events === undefined) return
            output.take(events)
            routed.observe(events)
            writing = sink.write(events)
          }
        })
        yield* Effect.catchAll(
          rest,
          Option.match({ onNone: () => Effect.void, onSome: (broken) => Effect.fail(broken) })
        )
      }, Effect.scoped)

      const breakStream = Effect.fnUntraced(function* (
        task: ChatTask,
        sink: ChatSink,
        held: Hold,
        output: StreamOutput,
        failure: RoutingFailure | SettleFailed | Aborted
      ) {
        task.record.code = "stream_error"
        yield* ledger.release(held)
        yield* sink.fail(failure)
        yield* writeOff(task, output.received(), output.route?.cost)
      })

      /** Most hosts count at the end alone, which the stream may be close to. */
      const readOn = (output: StreamOutput) => (interrupt: () => void) => {
        output.leave()
        if (output.awaitsUsage) return deadlines.schedule(Monotonic.millisOf(clock) + readOnMillis, interrupt)
        interrupt()
        return undefined
      }

      const settleForClient = Effect.fnUntraced(function* (task: ChatTask, held: Hold, output: StreamOutput) {
        const received = task.record.attempts.list.at(-1)?.received
        if (received !== undefined) {
          task.record.route = received.route
          output.route = received.route
          output.take(received.events)
        }
        if (!output.started) return
        const measured = yield* measure(task, output.receivedForClient())
        yield* Effect.ignore(settle(task, held, measured, output.route?.cost))
      })

      const streamHeld = Effect.fnUntraced(function* (
        task: ChatTask,
        prepared: PreparedRequest,
        sink: ChatSink,
        held: Hold,
        output: StreamOutput
      ) {
        const { departure } = sink
        const pumping = Effect.flatten(departure.interrupts(pumpStream(task, prepared, sink, output), readOn(output)))
        const outcome = yield* Effect.exit(Effect.interruptible(pumping))
        if (Exit.isFailure(outcome)) {
          const { cause } = outcome
          const failure = Cause.failureOption(cause)
          const isBroken = Option.isSome(failure)
          if (departure.isOver && (isBroken ? output.started : Cause.isInterruptedOnly(cause))) {
            return yield* settleForClient(task, held, output)
          }
          if (isBroken && (yield* sink.isOpen)) return yield* breakStream(task, sink, held, output, failure.value)
          if (Cause.isInterruptedOnly(cause) && (yield* sink.isOpen)) {
            yield* breakStream(task, sink, held, output, new Aborted())
          }
          return yield* outcome
        }
        const measured = yield* measure(task, output.received())
        const settled = yield* Effect.either(settle(task, held, measured, output.route?.cost))
        yield* Either.isLeft(settled)
          ? breakStream(task, sink, held, output, settled.left)
          : sink.finish(measured.billed, settled.right)
      })

      const stream = (task: ChatTask, sink: ChatSink) =>
        flatMapEager(router.admit(task.model, task.request), () =>
          withHold(
            task,
            Effect.fnUntraced(function* (held, task) {
              const prepared = hasImage(task.request) ? yield* prepareWhileConnected(task, sink.departure) : asIs(task)
              if (prepared === undefined) return
              const output = new StreamOutput()
              yield* Effect.catchAllDefect(
                streamHeld(task, prepared, sink, held, output),
                // After the head nothing else would end the response.
                Effect.fnUntraced(function* (defect) {
                  if (!(yield* sink.isOpen)) return yield* Effect.die(defect)
                  yield* Effect.logError("A stream failed unexpectedly", Cause.die(defect)).pipe(
                    Effect.annotateLogs("request_id", task.record.requestId)
                  )
                  return yield* breakStream(task, sink, held, output, new UpstreamFailed())
                })
              )
            })
          )
        )

      const quote = ({ model, request }: Pick<ChatTask, "model" | "request">) =>
        Effect.map(router.admit(model, request), () => Pricing.quoteChat(model, request))

      const countTokens = ({ model, request }: Pick<ChatTask, "model" | "request">) =>
        Effect.flatMap(
          router.countTokens(model, request),
          Option.match({
            onNone: () => countRequest(tokens, model, request),
            onSome: (counted) => Effect.succeed(Math.min(counted, Pricing.usageLimit(model, request)))
          })
        )

      return ChatCompletions.of({ complete, countTokens, quote, stream })
    })
  )
}
