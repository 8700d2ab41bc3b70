import { Cause, Effect, Either, Exit, Option } from "effect"
import type { ChatEvent, FinishReason, Unread, Usage } from "../../domain/Chat.ts"
import { hasImage } from "../../domain/ChatRules.ts"
import { Aborted, type RoutingFailure, type SettleFailed, UpstreamFailed } from "../../domain/Failure.ts"
import type { Hold } from "../../domain/Hold.ts"
import type { Route } from "../../domain/Model.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { StreamClient } from "../routing/RoutedStream.ts"
import type { ClientDeparture } from "../runtime/ClientDeparture.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type ChatTask, type HoldingServices, measure, settle, withHeldTask, writeOff } from "./ChatCharging.ts"
import { isEmptyRefusal, type Received } from "./ChatUsage.ts"
import { type PictureServices, preparePictures } from "./ImageInlining.ts"

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

const headAfterMillis = 25_000
/** Without its client. */
const readOnMillis = 2_000

export interface ChatServices extends HoldingServices, PictureServices {
  readonly deadlines: Deadlines
}

/** A stream whose hold is placed. */
interface HeldStream {
  /** What the hold covers. */
  readonly task: ChatTask
  readonly hold: Hold
  readonly sink: ChatSink
  readonly output: StreamOutput
}

/** How a stream ended; its client learns of it once its hold is closed. */
type StreamEnd =
  | { readonly _tag: "Charged"; readonly stream: HeldStream; readonly usage: Usage; readonly charge: NanoUsd }
  | { readonly _tag: "Left" }
  | {
      readonly _tag: "Broken"
      readonly stream: HeldStream
      readonly failure: RoutingFailure | SettleFailed | Aborted
      /** The interruption that broke it. */
      readonly interruption?: Cause.Cause<never> | undefined
    }

const left: StreamEnd = { _tag: "Left" }

const charged = (stream: HeldStream, usage: Usage, charge: NanoUsd): StreamEnd => ({
  _tag: "Charged",
  stream,
  usage,
  charge
})

const broken = (
  stream: HeldStream,
  failure: RoutingFailure | SettleFailed | Aborted,
  interruption?: Cause.Cause<never>
): StreamEnd => {
  stream.task.record.add({ type: "failed", code: "stream_error" })
  return { _tag: "Broken", stream, failure, interruption }
}

/** A stop interrupts only the fetching of pictures and the provider's stream, and its client gets an error. */
export const stream = Effect.fnUntraced(function* (services: ChatServices, task: ChatTask, sink: ChatSink) {
  const output = new StreamOutput()
  const end = yield* withHeldTask(services, task, (held, hold) => {
    const stream = { task: held, hold, sink, output }
    return breakOnDefect(stream, streamHeld(services, stream))
  })
  yield* tell(services, end)
}, Effect.uninterruptible)

const streamHeld = Effect.fnUntraced(function* (services: ChatServices, stream: HeldStream) {
  const { hold, output, sink, task } = stream
  yield* services.failpoint.reach("after_hold")
  const prepared = hasImage(task.request) ? yield* prepareWhileConnected(services, stream) : task
  if (prepared === undefined) return left
  const pumping = sink.departure.interrupts(pump(services, prepared, stream), readOn(services, output))
  const pumped = yield* Effect.exit(Effect.interruptible(Effect.flatten(pumping)))
  if (Exit.isFailure(pumped)) return yield* endEarly(services, stream, pumped.cause)
  const measured = yield* measure(services, task, output.received(), output.route)
  const settled = yield* Effect.either(settle(services, task, hold, measured, output.route?.cost))
  if (Either.isLeft(settled)) return broken(stream, settled.left)
  return charged(stream, measured.billed, settled.right)
})

/** Undefined for a client that leaves meanwhile. */
const prepareWhileConnected = Effect.fnUntraced(function* (
  services: ChatServices,
  { sink: { departure }, task }: HeldStream
) {
  const prepared = yield* Effect.interruptible(departure.interrupts(preparePictures(services, task)))
  return departure.isOver && Exit.isInterrupted(prepared) ? undefined : yield* prepared
})

/** Writes what the provider sends. Fails as the stream breaks. */
const pump = Effect.fnUntraced(function* (
  { clock, deadlines, failpoint, router }: ChatServices,
  { model, record, request, since }: ChatTask,
  { output, sink }: HeldStream
) {
  const cancelOpening = deadlines.schedule(Monotonic.millisOf(clock) + headAfterMillis, () => Effect.runSync(sink.open))
  const routing = router.stream(model, request, record.attempts, { since, client: sink })
  const { first, observe, pull, route } = yield* Effect.onExit(routing, () => Effect.sync(cancelOpening))
  output.route = route
  record.add({ type: "answered", route, at: Monotonic.millisOf(clock) })
  output.take(first)
  yield* sink.open
  yield* sink.write(first)
  yield* failpoint.reach("mid_stream")
  const rest = Effect.gen(function* () {
    while (true) {
      const events = yield* pull
      output.take(events)
      observe(events)
      yield* sink.write(events)
    }
  })
  yield* Effect.catchAll(rest, Option.match({ onNone: () => Effect.void, onSome: Effect.fail }))
}, Effect.scoped)

/** Most hosts count at the end alone, which the stream may be close to. */
const readOn =
  ({ clock, deadlines }: ChatServices, output: StreamOutput) =>
  (interrupt: () => void) => {
    output.leave()
    if (output.awaitsUsage) return deadlines.schedule(Monotonic.millisOf(clock) + readOnMillis, interrupt)
    interrupt()
    return undefined
  }

/** The end of a stream that was cut off. A client that left is charged; before the head is sent, the cause is returned. */
const endEarly = Effect.fnUntraced(function* (
  services: ChatServices,
  stream: HeldStream,
  cause: Cause.Cause<RoutingFailure>
) {
  const { output, sink } = stream
  const failure = Cause.failureOption(cause)
  const interruption = Cause.isInterruptedOnly(cause) ? Cause.stripFailures(cause) : undefined
  const hasLeft = Option.isSome(failure) ? output.started : interruption !== undefined
  if (sink.departure.isOver && hasLeft) {
    yield* chargeDeparted(services, stream)
    return left
  }
  if (yield* sink.isOpen) {
    if (Option.isSome(failure)) return broken(stream, failure.value)
    if (interruption !== undefined) return broken(stream, new Aborted(), interruption)
  }
  return yield* Effect.failCause(cause)
})

/** A settlement that fails has given back the hold. */
const chargeDeparted = Effect.fnUntraced(function* (services: ChatServices, { hold, output, task }: HeldStream) {
  const received = task.record.attempts.list.at(-1)?.received
  if (received !== undefined) {
    task.record.add({ type: "answered", route: received.route })
    output.route = received.route
    output.take(received.events)
  }
  if (!output.started) return
  const measured = yield* measure(services, task, output.receivedForClient(), output.route)
  yield* Effect.ignore(settle(services, task, hold, measured, output.route?.cost))
})

/** After the head nothing else would end the response. */
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
      return broken(stream, new UpstreamFailed())
    })
  )

/** Sends the end to the client, unless it has left. */
const tell = Effect.fnUntraced(function* (services: ChatServices, end: StreamEnd) {
  if (end._tag === "Left") return
  if (end._tag === "Broken") return yield* tellBreak(services, end)
  const { charge, stream, usage } = end
  const told = yield* breakOnDefect(stream, Effect.as(stream.sink.finish(usage, charge), left))
  if (told._tag === "Broken") yield* tellBreak(services, told)
})

const tellBreak = Effect.fnUntraced(function* (
  services: ChatServices,
  { failure, interruption, stream: { output, sink, task } }: Extract<StreamEnd, { readonly _tag: "Broken" }>
) {
  yield* sink.fail(failure)
  yield* writeOff(services, task, output.received(), output.route?.cost)
  if (interruption !== undefined) return yield* Effect.failCause(interruption)
})
