import type { IncomingMessage } from "node:http"
import { Data, Effect, identity, Schedule } from "effect"
import {
  type Aborted,
  BodyTooLarge,
  BodyTooSlow,
  type GatewayBusy,
  type InsufficientCredits,
  type PaymentDisputed,
  type SpendLimitReached
} from "../../domain/Failure.ts"
import type { ReserveMemory } from "../../services/runtime/InFlight.ts"
import { type BodyMemory, BodyMemoryBudget, type BodyOwner } from "./BodyMemoryBudget.ts"

const mib = 1024 * 1024
/** A large body that arrives more slowly keeps only the memory for its received bytes. */
const minReservedBytesPerSecond = mib
/** A body that arrives more slowly is refused. */
const minBytesPerSecond = 1000
const periodSeconds = 10
/** A larger body is copied from its chunks into blocks. */
const maxChunkedBytes = 128 * 1024
/** A freed block of this size returns to the operating system. Freed small chunks stay with the process. */
const maxBlockBytes = 4 * mib

/** The connection closed before the whole body arrived. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

/** `needs-memory`: receiving continues after a reservation. `too-long`: the body exceeds the limit. */
type Progress = "complete" | "needs-memory" | "too-long"

class BodyBuffer {
  received = 0
  isWaitingForMemory = false
  readonly #request: IncomingMessage
  readonly #memory: BodyMemory
  readonly #limitBytes: number
  readonly #blocks: Array<Buffer> = []
  #filled = 0
  #stop: ((failure: BodyTooSlow) => void) | undefined
  #seconds = -1
  #receivedBefore = 0
  #receivedBeforePeriod = 0

  constructor(request: IncomingMessage, memory: BodyMemory, limitBytes: number) {
    this.#request = request
    this.#memory = memory
    this.#limitBytes = limitBytes
    request.on("error", () => {})
  }

  next(upTo: number): Effect.Effect<Progress, BodyCutOff | BodyTooSlow> {
    return Effect.async((resume) => {
      const request = this.#request
      const detach = () => {
        this.#stop = undefined
        request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose)
      }
      const finish = (result: Effect.Effect<Progress, BodyCutOff | BodyTooSlow>) => {
        detach()
        resume(result)
      }
      const onData = (chunk: Buffer) => {
        this.#add(chunk)
        if (this.received <= upTo && this.#memory.tryReserve(this.received)) return
        request.pause()
        finish(Effect.succeed(this.received > this.#limitBytes ? "too-long" : "needs-memory"))
      }
      const onEnd = () => finish(Effect.succeed("complete"))
      const onClose = () => finish(Effect.fail(new BodyCutOff()))
      if (request.destroyed && !request.readableEnded) return onClose()
      this.#stop = (failure) => finish(Effect.fail(failure))
      request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose).resume()
      return Effect.sync(detach)
    })
  }

  toBuffer(): Buffer {
    const parts = this.#blocks.map((block, index) =>
      index === this.#blocks.length - 1 ? block.subarray(0, this.#filled) : block
    )
    const [first] = parts
    return parts.length === 1 && first !== undefined ? first : Buffer.concat(parts)
  }

  checkPace(): void {
    if (this.isWaitingForMemory) {
      this.#seconds = -1
      return
    }
    if (this.#seconds < 0) {
      this.#receivedBeforePeriod = this.received
    } else if (this.received - this.#receivedBefore < minReservedBytesPerSecond) {
      this.#memory.shrink(this.received)
    }
    this.#receivedBefore = this.received
    this.#seconds += 1
    if (this.#seconds < periodSeconds) return
    if (this.received - this.#receivedBeforePeriod < minBytesPerSecond * periodSeconds) {
      return this.#stop?.(new BodyTooSlow({ bytesPerSecond: minBytesPerSecond }))
    }
    this.#seconds = 0
    this.#receivedBeforePeriod = this.received
  }

  #add(chunk: Buffer): void {
    this.received += chunk.length
    if (this.received <= maxChunkedBytes) {
      this.#blocks.push(chunk)
      this.#filled = chunk.length
      return
    }
    let rest = chunk
    while (rest.length > 0) {
      const lastBlock = this.#blocks.at(-1)
      const freeBytes = lastBlock === undefined ? 0 : lastBlock.length - this.#filled
      if (lastBlock === undefined || freeBytes === 0) {
        this.#blocks.push(Buffer.allocUnsafeSlow(Math.min(Math.max(this.received, maxChunkedBytes), maxBlockBytes)))
        this.#filled = 0
        continue
      }
      this.#filled += rest.copy(lastBlock, this.#filled)
      rest = rest.subarray(freeBytes)
    }
  }
}

/** A body of at most this size is parsed without slices, and its request may take the rate unit together with its hold. */
export const smallBodyBytes = 64 * 1024
/** Up to this length, a body reserves memory as it arrives. A longer one reserves its whole length first. */
const maxGradualBytes = mib
/** The gateway forces a garbage collection, which pauses the process, only for at least this much freed memory. */
const minGarbageBytes = 64 * mib
const minCollectionIntervalSeconds = 10

type FundsFailure = InsufficientCredits | SpendLimitReached | PaymentDisputed

export type ArrivalFailure = Aborted | BodyTooLarge | BodyTooSlow | BodyCutOff | GatewayBusy
export type ReceiveFailure = ArrivalFailure | FundsFailure

export interface BodySource<E = ReceiveFailure> {
  readonly request: IncomingMessage
  /** Receives the body. Fails with `BodyTooLarge` if it has more than `limitBytes`. */
  readonly receive: (limitBytes: number) => Effect.Effect<Buffer, E>
}

export interface IncomingBody<E> extends BodySource<E> {
  readonly reserveMore: ReserveMemory
  readonly release: () => void
}

/** Receives all bodies of the process, which share one memory budget and one timer. */
export class BodyReceiver {
  readonly #budget = new BodyMemoryBudget()
  readonly #buffers = new Set<BodyBuffer>()
  readonly #collectGarbage: () => void
  #uncollectedBytes = 0
  #secondsSinceCollection = 0
  #collectionsDue = 0

  constructor(collectGarbage: () => void = () => globalThis.gc?.()) {
    this.#collectGarbage = collectGarbage
  }

  /** `admitLarge` runs before the gateway reads more than 1 MiB. `whileReceiving` wraps the wait for the rest of the body. */
  body<E>(
    request: IncomingMessage,
    owner: BodyOwner,
    admitLarge: Effect.Effect<void, E>,
    whileReceiving: (
      receiving: Effect.Effect<Buffer, ArrivalFailure | E>
    ) => Effect.Effect<Buffer, ArrivalFailure | E> = identity
  ): IncomingBody<ArrivalFailure | E> {
    const memory = this.#budget.memory(owner)
    return {
      request,
      receive: (limitBytes) =>
        this.#readComplete(request, limitBytes, memory) ??
        whileReceiving(this.#receive(request, limitBytes, memory, admitLarge)),
      reserveMore: (bytes) => {
        this.#uncollectedBytes += bytes
        return memory.reserveMore(bytes)
      },
      release: () => memory.shrink(0)
    }
  }

  readonly inspect = Effect.sync(() => {
    for (const buffer of this.#buffers) buffer.checkPace()
    this.#secondsSinceCollection += 1
    if (this.#secondsSinceCollection >= minCollectionIntervalSeconds) this.#collect()
  })

  /** Forces a garbage collection, because an idle process would keep large bodies. A second one frees their connections. */
  #collect(): void {
    const { reserved } = this.#budget
    if (this.#uncollectedBytes - reserved >= minGarbageBytes) {
      this.#uncollectedBytes = Math.min(this.#uncollectedBytes, reserved)
      this.#collectionsDue = 2
    }
    if (this.#collectionsDue === 0) return
    this.#collectionsDue -= 1
    this.#secondsSinceCollection = 0
    this.#collectGarbage()
  }

  #readComplete(request: IncomingMessage, limitBytes: number, memory: BodyMemory): Effect.Effect<Buffer> | undefined {
    if (!request.complete || request.destroyed || request.readableLength > limitBytes) return undefined
    if (!memory.tryReserve(request.readableLength)) return undefined
    const bytes: unknown = request.read()
    return Effect.succeed(Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0))
  }

  #receive<E>(
    request: IncomingMessage,
    limitBytes: number,
    memory: BodyMemory,
    admitLarge: Effect.Effect<void, E>
  ): Effect.Effect<Buffer, ArrivalFailure | E> {
    const contentLength = Number(request.headers["content-length"])
    if (contentLength > limitBytes) return new BodyTooLarge({ limitBytes })
    const buffer = new BodyBuffer(request, memory, limitBytes)
    const reserve = (bytes: number) => {
      buffer.isWaitingForMemory = true
      return Effect.tap(memory.reserve(bytes), () => {
        buffer.isWaitingForMemory = false
      })
    }
    const receiving = Effect.gen(function* () {
      let isLarge = false
      if (contentLength > maxGradualBytes) yield* admitLarge
      while (true) {
        const progress = yield* buffer.next(isLarge ? limitBytes : Math.min(maxGradualBytes, limitBytes))
        if (progress === "complete") return buffer.toBuffer()
        if (progress === "too-long") return yield* new BodyTooLarge({ limitBytes })
        if (!(contentLength > maxGradualBytes) && !isLarge && buffer.received > maxGradualBytes) yield* admitLarge
        // A body of undeclared length may be as large as the limit.
        const maxBytes = contentLength || limitBytes
        yield* reserve(isLarge || buffer.received <= maxGradualBytes ? buffer.received : maxBytes)
        isLarge = buffer.received > maxGradualBytes
      }
    })
    return Effect.suspend(() => {
      this.#buffers.add(buffer)
      return receiving
    }).pipe(
      // The rest of the body must be read and discarded, or the client might not read the response.
      Effect.onError(() => Effect.sync(() => request.resume())),
      Effect.ensuring(
        Effect.sync(() => {
          this.#buffers.delete(buffer)
          if (buffer.received > maxChunkedBytes) this.#uncollectedBytes += buffer.received
        })
      )
    )
  }
}

export const makeBodyReceiver = Effect.tap(
  Effect.sync(() => new BodyReceiver()),
  ({ inspect }) => Effect.forkScoped(Effect.repeat(inspect, Schedule.spaced("1 second")))
)
