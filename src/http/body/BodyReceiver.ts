import type { IncomingMessage } from "node:http"
import { Data, Effect, identity } from "effect"
import {
  type Aborted,
  BodyTooLarge,
  BodyTooSlow,
  type GatewayBusy,
  type InsufficientCredits
} from "../../domain/Failure.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { type BodyMemory, BodyMemoryBudget } from "./BodyMemoryBudget.ts"

const mib = 1024 * 1024
/** A body takes memory as it comes, and from so many bytes on for all that is still to come of it. */
const smallBytes = mib
/** A large body that comes slower than this, in bytes per second, gives back what it has not filled. */
const fastPace = mib
/** Below this, in bytes per second over so many seconds, a body is refused. */
const minimumPace = 1000
const paceSeconds = 10
/** Chunks are kept as they come up to so many bytes, and copied into blocks from then on. */
const looseBytes = 128 * 1024
/** The system takes back a block of this size when it is freed; the many chunks of a large body stay with the process. */
const mostOfBlock = 4 * mib
/** So many bytes of bodies make a collection worth its pause, and so many seconds are between two. */
const collectedBytes = 64 * mib
const collectionSeconds = 10

/** The connection ended before the body did; there is nobody left to answer. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

export type ReceiveFailure = Aborted | BodyTooLarge | BodyTooSlow | BodyCutOff | GatewayBusy | InsufficientCredits

/** A request whose body is still to come. */
export interface Incoming {
  readonly request: IncomingMessage
  /** Receives the body, of at most so many bytes; of a longer one hardly more than that is received. */
  readonly receive: (limitBytes: number) => Effect.Effect<Buffer, ReceiveFailure>
}

interface IncomingBody extends Incoming {
  /** The request is over: gives the body's memory back. */
  readonly release: () => void
}

/** `full`: there is no memory for more now; `longer`: it is longer than it may be. */
type Progress = "complete" | "full" | "longer"

/** A body in the middle of being received. */
class Reception {
  received = 0
  /** Waits for memory, which is not its sender's fault. */
  isHeld = false
  readonly #request: IncomingMessage
  readonly #memory: BodyMemory
  readonly #limitBytes: number
  /** Complete but for the last, which has `#filled` bytes. */
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

  /** Receives until the body ends, has more than so many bytes, or there is no memory for more. */
  next(upTo: number): Effect.Effect<Progress, BodyCutOff | BodyTooSlow> {
    return Effect.async((resume) => {
      const request = this.#request
      const leave = () => {
        this.#stop = undefined
        request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      }
      const done = (result: Effect.Effect<Progress, BodyCutOff | BodyTooSlow>) => {
        leave()
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
      return Effect.sync(leave)
    })
  }

  bytes(): Buffer {
    const all = this.#blocks.map((block, index) =>
      index === this.#blocks.length - 1 ? block.subarray(0, this.#filled) : block
    )
    const [first] = all
    return all.length === 1 && first !== undefined ? first : Buffer.concat(all)
  }

  /** To be called once a second. */
  inspect(): void {
    if (this.isHeld) {
      this.#seconds = -1
      return
    }
    if (this.#seconds < 0) {
      // It began, or went on, a part of a second ago.
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
        this.#blocks.push(Buffer.allocUnsafeSlow(Math.min(Math.max(this.received, looseBytes), mostOfBlock)))
        this.#filled = 0
        continue
      }
      this.#filled += rest.copy(last, this.#filled)
      rest = rest.subarray(room)
    }
  }
}

/** Receives the bodies of requests, all under one budget of memory and one timer for their pace and their garbage. */
export class BodyReceiver {
  readonly #budget = new BodyMemoryBudget()
  readonly #receptions = new Set<Reception>()
  readonly #collectGarbage: () => void
  /** Bytes of bodies in blocks since garbage was collected. */
  #uncollected = 0
  #secondsSinceCollection = 0
  #collectionsDue = 0

  constructor(collectGarbage: () => void = () => globalThis.gc?.()) {
    this.#collectGarbage = collectGarbage
  }

  /** `admitLarge` runs before a body of more than 1 MiB is received, `whileReceiving` around what has to be waited for. */
  body(
    request: IncomingMessage,
    org: OrgId,
    admitLarge: Effect.Effect<void, InsufficientCredits>,
    whileReceiving: (
      receiving: Effect.Effect<Buffer, ReceiveFailure>
    ) => Effect.Effect<Buffer, ReceiveFailure> = identity
  ): IncomingBody {
    const memory = this.#budget.memory(org)
    return {
      request,
      receive: (limitBytes) =>
        Effect.suspend(
          () =>
            this.#ready(request, limitBytes, memory) ??
            whileReceiving(this.#receive(request, limitBytes, memory, admitLarge))
        ),
      release: () => memory.shrink(0)
    }
  }

  /** To be run once a second. */
  readonly inspect = Effect.sync(() => {
    for (const reception of this.#receptions) reception.inspect()
    this.#secondsSinceCollection += 1
    if (this.#secondsSinceCollection >= collectionSeconds) this.#collect()
  })

  /**
   * A process that falls silent after large bodies has no other reason to collect them. What their connections kept
   * until then goes with a second collection.
   */
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

  /** Most bodies have come by the time they are asked for. */
  #ready(request: IncomingMessage, limitBytes: number, memory: BodyMemory): Effect.Effect<Buffer> | undefined {
    if (!request.complete || request.destroyed || request.readableLength > limitBytes) return undefined
    if (!memory.tryReserve(request.readableLength)) return undefined
    const bytes: unknown = request.read()
    return Effect.succeed(Buffer.isBuffer(bytes) ? bytes : Buffer.alloc(0))
  }

  #receive(
    request: IncomingMessage,
    limitBytes: number,
    memory: BodyMemory,
    admitLarge: Effect.Effect<void, InsufficientCredits>
  ): Effect.Effect<Buffer, ReceiveFailure> {
    const announced = Number(request.headers["content-length"])
    if (announced > limitBytes) return new BodyTooLarge({ limitBytes })
    const reception = new Reception(request, memory, limitBytes)
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
        // One that does not say how long it is may become as long as any.
        const all = announced || limitBytes
        yield* reserve(isLarge || reception.received <= smallBytes ? reception.received : all)
        isLarge = reception.received > smallBytes
      }
    })
    return Effect.suspend(() => {
      this.#receptions.add(reception)
      return receiving
    }).pipe(
      // Else the answer would find the connection stuck in what is still to come.
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
