import { Effect, Option } from "effect"
import { type Dispatcher, errors } from "undici"
import type { ProviderFailure } from "../../services/routing/Provider.ts"

/** Lower-case names; repeated headers are a list. */
export type UpstreamHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface UpstreamHead {
  readonly status: number
  readonly headers: UpstreamHeaders
}

export interface UpstreamResponse extends UpstreamHead {
  readonly body: string
}

type Controller = Dispatcher.DispatchController

/** Cancelling destroys its socket, now or once it has one. */
class Exchange {
  protected controller: Controller | undefined
  private cancelled = false
  protected readonly onReceived: ((headers: UpstreamHeaders) => void) | undefined

  constructor(onReceived?: (headers: UpstreamHeaders) => void) {
    this.onReceived = onReceived
  }

  onRequestStart(controller: Controller): void {
    this.controller = controller
    if (this.cancelled) controller.abort(new Error("cancelled"))
  }

  cancel(): void {
    this.cancelled = true
    this.controller?.abort(new Error("cancelled"))
  }

  /** It never had a connected socket. */
  protected get unsent(): boolean {
    return this.controller === undefined
  }
}

export type Received = number | undefined

interface BrokenExchange {
  readonly broke: Error | "too large"
  readonly received: Received
  readonly unsent: boolean
}

export type Outcome = UpstreamResponse | BrokenExchange

/** Only the first call of `done` counts. */
export class GatheredExchange extends Exchange {
  private readonly limitBytes: number
  private readonly done: (outcome: Outcome) => void
  private head: UpstreamHead | undefined
  private chunks: Array<Buffer> = []
  private bytes = 0

  constructor(limitBytes: number, done: (outcome: Outcome) => void, onReceived?: (headers: UpstreamHeaders) => void) {
    super(onReceived)
    this.limitBytes = limitBytes
    this.done = done
  }

  onResponseStart(_: Controller, status: number, headers: UpstreamHeaders): void {
    if (status < 200) return
    this.head = { status, headers }
    this.onReceived?.(headers)
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

export type Taken =
  | { readonly _tag: "Chunks"; readonly chunks: ReadonlyArray<Uint8Array> }
  | { readonly _tag: "Over"; readonly outcome: Option.Option<ProviderFailure> }

/** Past `highWaterBytes` unread, the socket is paused until the next `next`. */
export class StreamedExchange extends Exchange {
  private readonly onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void
  private readonly failure: (error: Error, received: Received, unsent: boolean) => ProviderFailure
  private received: Received
  private chunks: Array<Buffer> = []
  private bytes = 0
  private outcome: Option.Option<ProviderFailure> | undefined
  private isPaused = false
  private waiting: ((taken: Taken) => void) | undefined
  private discarding = false
  private linger: NodeJS.Timeout | undefined
  private silence: NodeJS.Timeout | undefined
  private readonly idleMillis: number

  constructor(
    idleMillis: number,
    onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void,
    failure: (error: Error, received: Received, unsent: boolean) => ProviderFailure,
    onReceived?: (headers: UpstreamHeaders) => void
  ) {
    super(onReceived)
    this.idleMillis = idleMillis
    this.onHead = onHead
    this.failure = failure
  }

  onResponseStart(_: Controller, status: number, headers: UpstreamHeaders): void {
    if (status < 200) return
    this.received = status
    this.onReceived?.(headers)
    this.onHead(Effect.succeed({ status, headers }))
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.discarding) {
      if (this.bytes > highWaterBytes) super.cancel()
      return
    }
    this.chunks.push(chunk)
    if (this.bytes > highWaterBytes && this.waiting === undefined) {
      this.isPaused = true
      controller.pause()
    }
    this.wake()
  }

  onResponseEnd(): void {
    this.end(Option.none())
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    const failure = this.failure(error, this.received, this.unsent)
    this.end(Option.some(failure))
    this.onHead(Effect.fail(failure))
  }

  /** Hands over all pending bytes, now or later; returns a canceller. */
  next(done: (taken: Taken) => void): () => void {
    const taken = this.take()
    if (taken === undefined) {
      this.waiting = done
      this.awaitBytes()
    } else done(taken)
    return () => {
      this.waiting = undefined
    }
  }

  /** Lets a response that is about to end do so, which keeps its connection usable. */
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

  /** A host that nobody reads is not silent. */
  private awaitBytes(): void {
    this.silence = this.silence?.refresh() ?? setTimeout(() => this.breakSilence(), this.idleMillis).unref()
  }

  private breakSilence(): void {
    if (this.waiting !== undefined) this.controller?.abort(new errors.BodyTimeoutError())
  }

  private end(outcome: Option.Option<ProviderFailure>): void {
    clearTimeout(this.linger)
    clearTimeout(this.silence)
    this.outcome = outcome
    this.wake()
  }

  private take(): Taken | undefined {
    if (this.chunks.length === 0) return this.outcome && { _tag: "Over", outcome: this.outcome }
    const { chunks } = this
    this.chunks = []
    this.bytes = 0
    if (this.isPaused) {
      this.isPaused = false
      this.controller?.resume()
    }
    return { _tag: "Chunks", chunks }
  }

  private wake(): void {
    const { waiting } = this
    if (waiting === undefined) return
    const taken = this.take()
    if (taken === undefined) return
    this.waiting = undefined
    waiting(taken)
  }
}
