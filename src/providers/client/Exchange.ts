import { Effect, Option } from "effect"
import { type Dispatcher, errors } from "undici"
import type { ProviderFailure } from "../../services/routing/Provider.ts"

/** Header names are lower case. Repeated headers are a list. */
export type UpstreamHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface UpstreamHead {
  readonly status: number
  readonly headers: UpstreamHeaders
}

export interface UpstreamResponse extends UpstreamHead {
  readonly body: string
}

type Controller = Dispatcher.DispatchController

/** An undici handler of one exchange. Cancelling destroys the socket, now or once it is connected. */
class Exchange {
  protected controller: Controller | undefined
  private isCancelled = false
  protected readonly onReceived: ((headers: UpstreamHeaders) => void) | undefined

  constructor(onReceived?: (headers: UpstreamHeaders) => void) {
    this.onReceived = onReceived
  }

  onRequestStart(controller: Controller): void {
    this.controller = controller
    if (this.isCancelled) controller.abort(new Error("cancelled"))
  }

  cancel(): void {
    this.isCancelled = true
    this.controller?.abort(new Error("cancelled"))
  }

  /** Whether the request never had a connected socket. */
  protected get isUnsent(): boolean {
    return this.controller === undefined
  }
}

export type ReceivedStatus = number | undefined

interface BrokenExchange {
  readonly error: Error | "too large"
  readonly receivedStatus: ReceivedStatus
  readonly isUnsent: boolean
}

export type Outcome = UpstreamResponse | BrokenExchange

/** Buffers the complete response. `done` may be called several times, and only the first call counts. */
export class BufferedExchange extends Exchange {
  private readonly limitBytes: number
  private readonly onDone: (outcome: Outcome) => void
  private head: UpstreamHead | undefined
  private chunks: Array<Buffer> = []
  private bytes = 0

  constructor(limitBytes: number, done: (outcome: Outcome) => void, onReceived?: (headers: UpstreamHeaders) => void) {
    super(onReceived)
    this.limitBytes = limitBytes
    this.onDone = done
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
    this.onDone({ error: "too large", receivedStatus: this.head?.status, isUnsent: false })
    this.cancel()
  }

  onResponseEnd(): void {
    const [first] = this.chunks
    const body = this.chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.chunks)
    const { headers, status } = this.head ?? { status: 0, headers: {} }
    this.onDone({ status, headers, body: body.toString("utf8") })
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    this.onDone({ error, receivedStatus: this.head?.status, isUnsent: this.isUnsent })
  }
}

const highWaterBytes = 65_536
const lingerMillis = 1_000

export type BodyRead =
  | { readonly _tag: "Chunks"; readonly chunks: ReadonlyArray<Uint8Array> }
  | { readonly _tag: "End"; readonly outcome: Option.Option<ProviderFailure> }

/** Streams a response. The socket is paused while more than `highWaterBytes` are unread, until `next` is called. */
export class StreamedExchange extends Exchange {
  private readonly onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void
  private readonly toFailure: (error: Error, receivedStatus: ReceivedStatus, isUnsent: boolean) => ProviderFailure
  private receivedStatus: ReceivedStatus
  private chunks: Array<Buffer> = []
  private bytes = 0
  private outcome: Option.Option<ProviderFailure> | undefined
  private isPaused = false
  private reader: ((bodyRead: BodyRead) => void) | undefined
  private isDiscarding = false
  private lingerTimer: NodeJS.Timeout | undefined
  private idleTimer: NodeJS.Timeout | undefined
  private readonly idleMillis: number

  constructor(
    idleMillis: number,
    onHead: (head: Effect.Effect<UpstreamHead, ProviderFailure>) => void,
    toFailure: (error: Error, receivedStatus: ReceivedStatus, isUnsent: boolean) => ProviderFailure,
    onReceived?: (headers: UpstreamHeaders) => void
  ) {
    super(onReceived)
    this.idleMillis = idleMillis
    this.onHead = onHead
    this.toFailure = toFailure
  }

  onResponseStart(_: Controller, status: number, headers: UpstreamHeaders): void {
    if (status < 200) return
    this.receivedStatus = status
    this.onReceived?.(headers)
    this.onHead(Effect.succeed({ status, headers }))
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.isDiscarding) {
      if (this.bytes > highWaterBytes) super.cancel()
      return
    }
    this.chunks.push(chunk)
    if (this.bytes > highWaterBytes && this.reader === undefined) {
      this.isPaused = true
      controller.pause()
    }
    this.notifyReader()
  }

  onResponseEnd(): void {
    this.end(Option.none())
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    const failure = this.toFailure(error, this.receivedStatus, this.isUnsent)
    this.end(Option.some(failure))
    this.onHead(Effect.fail(failure))
  }

  /** Passes all buffered bytes to `done`, now or when some arrive. Returns a function that cancels the read. */
  next(done: (bodyRead: BodyRead) => void): () => void {
    const bodyRead = this.takeBuffered()
    if (bodyRead === undefined) {
      this.reader = done
      this.startIdleTimer()
    } else done(bodyRead)
    return () => {
      this.reader = undefined
    }
  }

  /** Discards the rest, and waits up to a second for its end, so that the connection can be reused. */
  finish(): void {
    if (this.outcome !== undefined || this.isDiscarding) return
    this.isDiscarding = true
    this.chunks = []
    this.bytes = 0
    this.lingerTimer = setTimeout(() => super.cancel(), lingerMillis).unref()
    this.controller?.resume()
  }

  override cancel(): void {
    if (!this.isDiscarding && this.outcome === undefined) super.cancel()
  }

  /** The idle timeout applies only while a read is pending. */
  private startIdleTimer(): void {
    this.idleTimer = this.idleTimer?.refresh() ?? setTimeout(() => this.abortIdle(), this.idleMillis).unref()
  }

  private abortIdle(): void {
    if (this.reader !== undefined) this.controller?.abort(new errors.BodyTimeoutError())
  }

  private end(outcome: Option.Option<ProviderFailure>): void {
    clearTimeout(this.lingerTimer)
    clearTimeout(this.idleTimer)
    this.outcome = outcome
    this.notifyReader()
  }

  private takeBuffered(): BodyRead | undefined {
    if (this.chunks.length === 0) return this.outcome && { _tag: "End", outcome: this.outcome }
    const { chunks } = this
    this.chunks = []
    this.bytes = 0
    if (this.isPaused) {
      this.isPaused = false
      this.controller?.resume()
    }
    return { _tag: "Chunks", chunks }
  }

  private notifyReader(): void {
    const { reader } = this
    if (reader === undefined) return
    const bodyRead = this.takeBuffered()
    if (bodyRead === undefined) return
    this.reader = undefined
    reader(bodyRead)
  }
}
