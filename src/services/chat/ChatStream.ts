import { Cause, Effect, Either, Exit, Option } from "effect"
import type { ChatEvent, FinishReason, UnknownPart, Usage } from "../../domain/Chat.ts"
import { hasImage } from "../../domain/ChatRules.ts"
import { Aborted, type RoutingFailure, type SettleFailed, UpstreamFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Route } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { StreamClient } from "../routing/ChatRouting.ts"
import type { ClientDeparture, Deadlines } from "../runtime/Deadlines.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import { type ChatTask, type HoldingServices, measure, settle, withHeldTask, writeOff } from "./ChatCharging.ts"
import { isEmptyRefusal, type ReceivedOutput } from "./ChatUsage.ts"
import { type MessageImageServices, prepareImages } from "./MessageImages.ts"

/** Its methods never fail. `departure` reports that the client disconnected. */
export interface ChatSink extends StreamClient {
  /** Sends the response head once, then keep-alives while the stream is idle. */
  readonly open: Effect.Effect<void>
  /** True once the response head is sent. After that, an error can only be sent as an event of the stream. */
  readonly isOpen: Effect.Effect<boolean>
  /** Writes at once, then waits until the client can receive more. */
  readonly write: (events: ReadonlyArray<ChatEvent>) => Effect.Effect<void>
  readonly finish: (usage: Usage, charge: NanoUsd) => Effect.Effect<void>
  readonly fail: (failure: RoutingFailure | SettleFailed | Aborted) => Effect.Effect<void>
  readonly departure: ClientDeparture
}

/** Limits the collected output. It is more than any model generates. */
const maxCharacters = 16_000_000

/** Collects the output, to count its tokens if the stream ends early or the provider reports no usage. */
class StreamOutput {
  hasStarted = false
  route: Route | undefined
  isNative = false
  #usage: Usage | undefined
  #isCounted = false
  #finish: FinishReason | undefined
  #isFree = false
  #unread: Array<UnknownPart> | undefined
  #length = 0
  #deliveredCount: number | undefined
  readonly #pieces: Array<string> = []

  add(events: ReadonlyArray<ChatEvent>): void {
    this.hasStarted = true
    for (const event of events) {
      if (event.type === "content" || event.type === "reasoning") this.#append(event.text)
      else if (event.type === "tool_call") this.#append((event.name ?? "") + event.arguments)
      else if (event.type === "usage") {
        this.#usage = event.usage
        // A partial usage without reasoning tokens is not final: the provider may add them at the end.
        this.#isCounted = event.isPartial === true && event.usage.reasoning > 0
      } else if (event.type === "native") this.isNative = true
      else if (event.type === "finish") {
        this.#finish = event.reason
        this.#isFree = event.isFree === true
      } else if (event.type === "unread") (this.#unread ??= []).push(event.unread)
    }
  }

  /** False before the first output, and if the provider already reported usage during the stream. */
  get awaitsUsage(): boolean {
    return this.hasStarted && !this.#isCounted
  }

  /** Call when the client disconnects. Output that is added later does not count as received by the client. */
  markDeparture(): void {
    if (this.hasStarted) this.#deliveredCount = this.#pieces.length
  }

  received(): ReceivedOutput {
    return {
      reported: this.#usage,
      produced: this.#pieces.join(""),
      isNative: this.isNative,
      isEmptyRefusal: isEmptyRefusal(this.#finish, this.#length),
      isFree: this.#isFree,
      unread: this.#unread ?? []
    }
  }

  /** Returns the output up to the client's disconnection. */
  receivedForClient(): ReceivedOutput {
    return { ...this.received(), produced: this.#pieces.slice(0, this.#deliveredCount).join(""), isCut: true }
  }

  #append(text: string): void {
    this.#length += text.length
    if (this.#length <= maxCharacters) this.#pieces.push(text)
  }
}

const headDelayMillis = 25_000
/** How long a stream continues after its client disconnected, to get the usage. */
const maxUsageWaitMillis = 2_000

export interface ChatServices extends HoldingServices, MessageImageServices {
  readonly deadlines: Deadlines
}

interface HeldStream {
  /** The task with the output cap that the hold covers. */
  readonly task: ChatTask
  readonly hold: Hold
  readonly sink: ChatSink
  readonly output: StreamOutput
}

/** The end of a stream, which is sent to the client after the hold is closed. */
type StreamEnd =
  | { readonly _tag: "Charged"; readonly stream: HeldStream; readonly usage: Usage; readonly charge: NanoUsd }
  | { readonly _tag: "Left" }
  | {
      readonly _tag: "Broken"
      readonly stream: HeldStream
      readonly failure: RoutingFailure | SettleFailed | Aborted
      /** Set if an interruption broke the stream. */
      readonly interruption?: Cause.Cause<never> | undefined
    }

const departedEnd: StreamEnd = { _tag: "Left" }

const endCharged = (stream: HeldStream, usage: Usage, charge: NanoUsd): StreamEnd => ({
  _tag: "Charged",
  stream,
  usage,
  charge
})

const endBroken = (
  stream: HeldStream,
  failure: RoutingFailure | SettleFailed | Aborted,
  interruption?: Cause.Cause<never>
): StreamEnd => {
  stream.task.record.add({ type: "failed", code: "stream_error" })
  return { _tag: "Broken", stream, failure, interruption }
}

/** Shutdown interrupts only image fetches and the provider's stream. The client then gets an error. */
export const stream = Effect.fnUntraced(function* (services: ChatServices, task: ChatTask, sink: ChatSink) {
  const output = new StreamOutput()
  const end = yield* withHeldTask(services, task, (heldTask, hold) => {
    const stream = { task: heldTask, hold, sink, output }
    return breakOnDefect(stream, streamHeld(services, stream))
  })
  yield* sendEnd(services, end)
}, Effect.uninterruptible)

const streamHeld = Effect.fnUntraced(function* (services: ChatServices, stream: HeldStream) {
  const { hold, output, sink, task } = stream
  yield* services.failpoint.reach("after_hold")
  const preparedTask = hasImage(task.request) ? yield* prepareWhileConnected(services, stream) : task
  if (preparedTask === undefined) return departedEnd
  const pumpUntilDeparture = sink.departure.interruptOnLeave(
    pump(services, preparedTask, stream),
    delayInterrupt(services, output)
  )
  const exit = yield* Effect.exit(Effect.interruptible(Effect.flatten(pumpUntilDeparture)))
  if (Exit.isFailure(exit)) return yield* endEarly(services, stream, exit.cause)
  const measurement = yield* measure(services, task, output.received(), output.route)
  const settlement = yield* Effect.either(settle(services, task, hold, measurement, output.route?.cost))
  if (Either.isLeft(settlement)) return endBroken(stream, settlement.left)
  return endCharged(stream, measurement.billed, settlement.right)
})

/** Returns undefined if the client disconnects. */
const prepareWhileConnected = Effect.fnUntraced(function* (
  services: ChatServices,
  { sink: { departure }, task }: HeldStream
) {
  const preparedTask = yield* Effect.interruptible(departure.interruptOnLeave(prepareImages(services, task)))
  return departure.hasLeft && Exit.isInterrupted(preparedTask) ? undefined : yield* preparedTask
})

/** Forwards the provider's events to the client. Fails if the stream breaks. */
const pump = Effect.fnUntraced(function* (
  { clock, deadlines, failpoint, router }: ChatServices,
  { model, record, request, since }: ChatTask,
  { output, sink }: HeldStream
) {
  const cancelOpening = deadlines.schedule(monotonicMillisOf(clock) + headDelayMillis, () => Effect.runSync(sink.open))
  const routing = router.stream(model, request, record.attempts, { since, client: sink })
  const { firstEvents, observe, pull, route } = yield* Effect.onExit(routing, () => Effect.sync(cancelOpening))
  output.route = route
  record.add({ type: "answered", route, at: monotonicMillisOf(clock) })
  output.add(firstEvents)
  yield* sink.open
  yield* sink.write(firstEvents)
  yield* failpoint.reach("mid_stream")
  const forwardRest = Effect.gen(function* () {
    while (true) {
      const events = yield* pull
      output.add(events)
      observe(events)
      yield* sink.write(events)
    }
  })
  yield* Effect.catchAll(forwardRest, Option.match({ onNone: () => Effect.void, onSome: Effect.fail }))
}, Effect.scoped)

/**
 * Returns a function that interrupts the stream of a disconnected client, after a delay if the usage is still missing.
 * Most providers report usage only at the end.
 */
const delayInterrupt =
  ({ clock, deadlines }: ChatServices, output: StreamOutput) =>
  (interrupt: () => void) => {
    output.markDeparture()
    if (output.awaitsUsage) return deadlines.schedule(monotonicMillisOf(clock) + maxUsageWaitMillis, interrupt)
    interrupt()
    return undefined
  }

/**
 * Ends an interrupted or failed stream. A disconnected client is charged. Fails with the cause if the response head was
 * not sent.
 */
const endEarly = Effect.fnUntraced(function* (
  services: ChatServices,
  stream: HeldStream,
  cause: Cause.Cause<RoutingFailure>
) {
  const { output, sink } = stream
  const failure = Cause.failureOption(cause)
  const interruption = Cause.isInterruptedOnly(cause) ? Cause.stripFailures(cause) : undefined
  const hasLeft = Option.isSome(failure) ? output.hasStarted : interruption !== undefined
  if (sink.departure.hasLeft && hasLeft) {
    yield* chargeDeparted(services, stream)
    return departedEnd
  }
  if (yield* sink.isOpen) {
    if (Option.isSome(failure)) return endBroken(stream, failure.value)
    if (interruption !== undefined) return endBroken(stream, new Aborted(), interruption)
  }
  return yield* Effect.failCause(cause)
})

/** Charges a disconnected client. Ignores a failed settlement, which has already released or refunded the hold. */
const chargeDeparted = Effect.fnUntraced(function* (services: ChatServices, { hold, output, task }: HeldStream) {
  const received = task.record.attempts.list.at(-1)?.received
  if (received !== undefined) {
    task.record.add({ type: "answered", route: received.route })
    output.route = received.route
    output.add(received.events)
  }
  if (!output.hasStarted) return
  const measurement = yield* measure(services, task, output.receivedForClient(), output.route)
  yield* Effect.ignore(settle(services, task, hold, measurement, output.route?.cost))
})

/** Turns a defect after the response head into a broken end, because nothing else would end the response. */
const breakOnDefect = <E, R>(stream: HeldStream, ending: Effect.Effect<StreamEnd, E, R>) =>
  Effect.catchAllDefect(
    ending,
    Effect.fnUntraced(function* (defect) {
      if (!(yield* stream.sink.isOpen)) return yield* Effect.die(defect)
      yield* Effect.annotateLogs(
        Effect.logError("A stream failed unexpectedly", Cause.die(defect)),
        "request_id",
        stream.task.record.facts.requestId
      )
      return endBroken(stream, new UpstreamFailed())
    })
  )

/** Sends the end to a connected client. */
const sendEnd = Effect.fnUntraced(function* (services: ChatServices, end: StreamEnd) {
  if (end._tag === "Left") return
  if (end._tag === "Broken") return yield* sendFailure(services, end)
  const { charge, stream, usage } = end
  const outcome = yield* breakOnDefect(stream, Effect.as(stream.sink.finish(usage, charge), departedEnd))
  if (outcome._tag === "Broken") yield* sendFailure(services, outcome)
})

const sendFailure = Effect.fnUntraced(function* (
  services: ChatServices,
  { failure, interruption, stream: { output, sink, task } }: Extract<StreamEnd, { readonly _tag: "Broken" }>
) {
  yield* sink.fail(failure)
  yield* writeOff(services, task, output.received(), output.route?.cost)
  if (interruption !== undefined) return yield* Effect.failCause(interruption)
})
