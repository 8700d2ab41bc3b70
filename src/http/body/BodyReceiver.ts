import type { IncomingMessage } from "node:http"
import { Effect, identity, Schedule } from "effect"
import {
  type Aborted,
  BodyTooLarge,
  type BodyTooSlow,
  type GatewayBusy,
  type InsufficientCredits,
  type PaymentDisputed,
  type SpendLimitReached
} from "../../domain/Failure.ts"
import type { ReserveMemory } from "../../services/runtime/RequestMemory.ts"
import { BodyBuffer, type BodyCutOff, looseBytes } from "./BodyBuffer.ts"
import { type BodyMemory, BodyMemoryBudget, type BodyOwner } from "./BodyMemoryBudget.ts"

const mib = 1024 * 1024
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
