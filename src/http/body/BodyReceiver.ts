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
import type { ReserveMemory } from "../../services/runtime/RequestMemory.ts"
import { type BodyMemory, BodyMemoryBudget, type BodyOwner } from "./BodyMemoryBudget.ts"

const mib = 1024 * 1024
/** A slower large body gives back what it has not filled; bytes per second. */
const fastPace = mib
/** A slower body is refused; bytes per second. */
const minimumPace = 1000
const paceSeconds = 10
/** Chunks are kept up to this size, then copied into blocks. */
const looseBytes = 128 * 1024
/** The system takes back a freed block of this size; many small chunks stay with the process. */
const maxOfBlock = 4 * mib
/** The connection ended before the body did. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

/** `full`: no memory; `longer`: over the limit. */
type Progress = "complete" | "full" | "longer"

class BodyBuffer {
  received = 0
  isHeld = false
  readonly #request: IncomingMessage
  readonly #memory: BodyMemory
  readonly #limitBytes: number
  readonly #blocks: Array<Buffer> = []
  #filled = 0
  #stop: ((failure: BodyTooSlow) => void) | undefined
  #seconds = -1
  #receivedBefore = 0
  #receivedInPeriod = 0

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
        request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      }
      const done = (result: Effect.Effect<Progress, BodyCutOff | BodyTooSlow>) => {
        detach()
        resume(result)
      }
      const onData = (chunk: Buffer) => {
        this.#add(chunk)
        if (this.received <= upTo && this.#memory.tryReserve(this.received)) return
        request.pause()
        done(Effect.succeed(this.received > this.#limitBytes ? "longer" : "full"))
      }
      const onEnd = () => done(Effect.succeed("complete"))
      const onCut = () => done(Effect.fail(new BodyCutOff()))
      if (request.destroyed && !request.readableEnded) return onCut()
      this.#stop = (failure) => done(Effect.fail(failure))
      request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut).resume()
      return Effect.sync(detach)
    })
  }

  bytes(): Buffer {
    const all = this.#blocks.map((block, index) =>
      index === this.#blocks.length - 1 ? block.subarray(0, this.#filled) : block
    )
    const [first] = all
    return all.length === 1 && first !== undefined ? first : Buffer.concat(all)
  }

  inspect(): void {
    if (this.isHeld) {
      this.#seconds = -1
      return
    }
    if (this.#seconds < 0) {
      this.#receivedInPeriod = this.received
    } else if (this.received - this.#receivedBefore < fastPace) {
      this.#memory.shrink(this.received)
    }
    this.#receivedBefore = this.received
    this.#seconds += 1
    if (this.#seconds < paceSeconds) return
    if (this.received - this.#receivedInPeriod < minimumPace * paceSeconds) {
      return this.#stop?.(new BodyTooSlow({ bytesPerSecond: minimumPace }))
    }
    this.#seconds = 0
    this.#receivedInPeriod = this.received
  }

  #add(chunk: Buffer): void {
    this.received += chunk.length
    if (this.received <= looseBytes) {
      this.#blocks.push(chunk)
      this.#filled = chunk.length
      return
    }
    let rest = chunk
    while (rest.length > 0) {
      const last = this.#blocks.at(-1)
      const room = last === undefined ? 0 : last.length - this.#filled
      if (last === undefined || room === 0) {
        this.#blocks.push(Buffer.allocUnsafeSlow(Math.min(Math.max(this.received, looseBytes), maxOfBlock)))
        this.#filled = 0
        continue
      }
      this.#filled += rest.copy(last, this.#filled)
      rest = rest.subarray(room)
    }
  }
}

/** Parsed in one go, and read before the rate unit is taken if it came with its head. */
export const smallBody = 64 * 1024
/** From this size on, the rest of the body is reserved at once. */
const smallBytes = mib
/** How much makes a garbage collection worth its pause, and how often. */
const collectedBytes = 64 * mib
const collectionSeconds = 10

type Insolvent = InsufficientCredits | SpendLimitReached | PaymentDisputed

export type ArrivalFailure = Aborted | BodyTooLarge | BodyTooSlow | BodyCutOff | GatewayBusy
export type ReceiveFailure = ArrivalFailure | Insolvent

export interface Incoming<E = ReceiveFailure> {
  readonly request: IncomingMessage
  /** Up to so many bytes; of a longer body hardly more is received. Takes at once what is there already. */
  readonly receive: (limitBytes: number) => Effect.Effect<Buffer, E>
}

export interface IncomingBody<E> extends Incoming<E> {
  readonly reserveMore: ReserveMemory
  readonly release: () => void
}

/** One memory budget and one timer for all bodies. */
export class BodyReceiver {
  readonly #budget = new BodyMemoryBudget()
  readonly #receptions = new Set<BodyBuffer>()
  readonly #collectGarbage: () => void
  #uncollected = 0
  #secondsSinceCollection = 0
  #collectionsDue = 0

  constructor(collectGarbage: () => void = () => globalThis.gc?.()) {
    this.#collectGarbage = collectGarbage
  }

  /** `admitLarge` runs before a body of more than 1 MiB, `whileReceiving` around the wait. */
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
        this.#ready(request, limitBytes, memory) ??
        whileReceiving(this.#receive(request, limitBytes, memory, admitLarge)),
      reserveMore: (bytes) => {
        this.#uncollected += bytes
        return memory.reserveMore(bytes)
      },
      release: () => memory.shrink(0)
    }
  }

  readonly inspect = Effect.sync(() => {
    for (const reception of this.#receptions) reception.inspect()
    this.#secondsSinceCollection += 1
    if (this.#secondsSinceCollection >= collectionSeconds) this.#collect()
  })

  /** A silent process never collects large bodies by itself; their connections need a second collection. */
  #collect(): void {
    const { reserved } = this.#budget
    if (this.#uncollected - reserved >= collectedBytes) {
      this.#uncollected = Math.min(this.#uncollected, reserved)
      this.#collectionsDue = 2
    }
    if (this.#collectionsDue === 0) return
    this.#collectionsDue -= 1
    this.#secondsSinceCollection = 0
    this.#collectGarbage()
  }

  #ready(request: IncomingMessage, limitBytes: number, memory: BodyMemory): Effect.Effect<Buffer> | undefined {
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
    const announced = Number(request.headers["content-length"])
    if (announced > limitBytes) return new BodyTooLarge({ limitBytes })
    const reception = new BodyBuffer(request, memory, limitBytes)
    const reserve = (bytes: number) => {
      reception.isHeld = true
      return Effect.tap(memory.reserve(bytes), () => {
        reception.isHeld = false
      })
    }
    const receiving = Effect.gen(function* () {
      let isLarge = false
      if (announced > smallBytes) yield* admitLarge
      while (true) {
        const progress = yield* reception.next(isLarge ? limitBytes : Math.min(smallBytes, limitBytes))
        if (progress === "complete") return reception.bytes()
        if (progress === "longer") return yield* new BodyTooLarge({ limitBytes })
        if (!(announced > smallBytes) && !isLarge && reception.received > smallBytes) yield* admitLarge
        // A body without a length may reach the limit.
        const all = announced || limitBytes
        yield* reserve(isLarge || reception.received <= smallBytes ? reception.received : all)
        isLarge = reception.received > smallBytes
      }
    })
    return Effect.suspend(() => {
      this.#receptions.add(reception)
      return receiving
    }).pipe(
      // Else the response would find the connection blocked by the rest of the body.
      Effect.onError(() => Effect.sync(() => request.resume())),
      Effect.ensuring(
        Effect.sync(() => {
          this.#receptions.delete(reception)
          if (reception.received > looseBytes) this.#uncollected += reception.received
        })
      )
    )
  }
}

export const makeBodyReceiver = Effect.tap(
  Effect.sync(() => new BodyReceiver()),
  ({ inspect }) => Effect.forkScoped(Effect.repeat(inspect, Schedule.spaced("1 second")))
)
