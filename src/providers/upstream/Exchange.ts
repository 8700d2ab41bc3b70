import { Effect, Option } from "effect"
import type { Dispatcher } from "undici"
import type { ProviderFailure } from "../../services/Provider.ts"

/** Lower-case names; a header that came several times is a list. */
export type UpstreamHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface UpstreamHead {
  readonly status: number
  readonly headers: UpstreamHeaders
}

export interface UpstreamAnswer extends UpstreamHead {
  readonly body: string
}

type Controller = Dispatcher.DispatchController

/** One request on the wire. Cancelling destroys its socket, now or as soon as it has one. */
class Exchange {
  protected controller: Controller | undefined
  private cancelled = false

  onRequestStart(controller: Controller): void {
    this.controller = controller
    if (this.cancelled) controller.abort(new Error("cancelled"))
  }

  cancel(): void {
    this.cancelled = true
    this.controller?.abort(new Error("cancelled"))
  }

  /** It never had a connected socket: nothing of it can have arrived anywhere. */
  protected get unsent(): boolean {
    return this.controller === undefined
  }
}

/** The status that had come, where one had. */
export type Received = number | undefined

export interface Broken {
  readonly broke: Error | "too large"
  readonly received: Received
  readonly unsent: boolean
}

export type Outcome = UpstreamAnswer | Broken

/** An answer taken whole, up to a limit. `done` hears of the outcome first; anything after it is of no account. */
export class Gathered extends Exchange {
  private readonly limitBytes: number
  private readonly done: (outcome: Outcome) => void
  private head: UpstreamHead | undefined
  private chunks: Array<Buffer> = []
  private bytes = 0

  constructor(limitBytes: number, done: (outcome: Outcome) => void) {
    super()
    this.limitBytes = limitBytes
    this.done = done
  }

  onResponseStart(_: Controller, status: number, headers: UpstreamHeaders): void {
    this.head = { status, headers }
  }

  onResponseData(_: Controller, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes <= this.limitBytes) {
      this.chunks.push(chunk)
      return
    }
    this.chunks = []
    this.done({ broke: "too large", received: this.head?.status, unsent: false })
    this.cancel()
  }

  onResponseEnd(): void {
    const [first] = this.chunks
    const whole = this.chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.chunks)
    const { headers, status } = this.head ?? { status: 0, headers: {} }
    this.done({ status, headers, body: whole.toString("utf8") })
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    this.done({ broke: error, received: this.head?.status, unsent: this.unsent })
  }
}

const highWaterBytes = 65_536
const lingerMillis = 1_000

/** A body read piece by piece. Past `highWaterBytes` unread, the socket is paused until the next `take`. */
export class Flowing extends Exchange {
  private readonly onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void
  private readonly failure: (error: Error, received: Received, unsent: boolean) => ProviderFailure
  private received: Received
  private chunks: Array<Buffer> = []
  private bytes = 0
  private outcome: Option.Option<ProviderFailure> | undefined
  private waiting: (() => void) | undefined
  private discarding = false
  private linger: NodeJS.Timeout | undefined

  constructor(
    onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void,
    failure: (error: Error, received: Received, unsent: boolean) => ProviderFailure
  ) {
    super()
    this.onHead = onHead
    this.failure = failure
  }

  onResponseStart(_: Controller, status: number, headers: UpstreamHeaders): void {
    if (status < 200) return
    this.received = status
    this.onHead(Effect.succeed({ status, headers }))
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.discarding) {
      if (this.bytes > highWaterBytes) super.cancel()
      return
    }
    this.chunks.push(chunk)
    if (this.bytes > highWaterBytes) controller.pause()
    this.wake()
  }

  onResponseEnd(): void {
    this.over(Option.none())
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    const failure = this.failure(error, this.received, this.unsent)
    this.over(Option.some(failure))
    this.onHead(Effect.fail(failure))
  }

  /** Everything that came since the last take; waits for the next byte where there is none. */
  readonly take: Effect.Effect<ReadonlyArray<Uint8Array>, Option.Option<ProviderFailure>> = Effect.suspend(() => {
    if (this.chunks.length > 0) {
      const taken = this.chunks
      this.chunks = []
      this.bytes = 0
      this.controller?.resume()
      return Effect.succeed(taken)
    }
    if (this.outcome !== undefined) return Effect.fail(this.outcome)
    return Effect.async((resume) => {
      this.waiting = () => resume(this.take)
      return Effect.sync(() => {
        this.waiting = undefined
      })
    })
  })

  /** Lets a host that is about to end do so by itself, so that its connection can serve again. */
  finish(): void {
    if (this.outcome !== undefined || this.discarding) return
    this.discarding = true
    this.chunks = []
    this.bytes = 0
    this.linger = setTimeout(() => super.cancel(), lingerMillis).unref()
    this.controller?.resume()
  }

  override cancel(): void {
    if (!this.discarding && this.outcome === undefined) super.cancel()
  }

  private over(outcome: Option.Option<ProviderFailure>): void {
    clearTimeout(this.linger)
    this.outcome = outcome
    this.wake()
  }

  private wake(): void {
    const waiting = this.waiting
    this.waiting = undefined
    waiting?.()
  }
}
