import type { IncomingMessage } from "node:http"
import { Data, Effect } from "effect"
import { BodyTooSlow } from "../../domain/Failure.ts"
import type { BodyMemory } from "./BodyMemoryBudget.ts"

const mib = 1024 * 1024
/** A slower large body gives back what it has not filled; bytes per second. */
const fastPace = mib
/** A slower body is refused; bytes per second. */
const minimumPace = 1000
const paceSeconds = 10
/** Chunks are kept up to this size, then copied into blocks. */
export const looseBytes = 128 * 1024
/** The system takes back a freed block of this size; many small chunks stay with the process. */
const maxOfBlock = 4 * mib
/** The connection ended before the body did. */
export class BodyCutOff extends Data.TaggedError("BodyCutOff")<{}> {}

/** `full`: no memory; `longer`: over the limit. */
type Progress = "complete" | "full" | "longer"

export class BodyBuffer {
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
