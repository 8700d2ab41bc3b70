import { Chunk, Effect, Option } from "effect"
import type { Dispatcher } from "undici"
import type { FetchFailed } from "../services/media/Fetcher.ts"
import { broken, failed } from "./Failed.ts"

type Controller = Dispatcher.DispatchController
type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface Head {
  readonly status: number
  readonly headers: Headers
}

const highWaterBytes = 65_536

/** One answer on the wire, for one reader. Past `highWaterBytes` unread, the socket is paused until the next `take`. */
export class Transfer {
  private readonly url: URL
  private readonly limitBytes: number
  private controller: Controller | undefined
  private received: Head | undefined
  private chunks: Array<Uint8Array> = []
  private unread = 0
  private total = 0
  private outcome: Option.Option<FetchFailed> | undefined
  private waiting: (() => void) | undefined

  constructor(url: URL, limitBytes: number) {
    this.url = url
    this.limitBytes = limitBytes
  }

  readonly head: Effect.Effect<Head, FetchFailed> = Effect.suspend(() => {
    if (this.received !== undefined) return Effect.succeed(this.received)
    if (this.outcome === undefined) return this.later(() => this.head)
    return Effect.fail(Option.getOrElse(this.outcome, () => broken(this.url, new Error("no answer"))))
  })

  /** What came since the last take; `Option.none()` ends a body that came whole. */
  readonly take: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<FetchFailed>> = Effect.suspend(() => {
    if (this.chunks.length > 0) {
      const taken = this.chunks
      this.chunks = []
      this.unread = 0
      this.controller?.resume()
      return Effect.succeed(Chunk.unsafeFromArray(taken))
    }
    return this.outcome === undefined ? this.later(() => this.take) : Effect.fail(this.outcome)
  })

  /** Ends it here, whatever was still to come. */
  fail(failure: FetchFailed): void {
    if (this.outcome !== undefined) return
    this.chunks = []
    this.over(Option.some(failure))
    this.controller?.abort(failure)
  }

  onRequestStart(controller: Controller): void {
    this.controller = controller
    if (this.outcome !== undefined) controller.abort(new Error("given up"))
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return
    this.received = { status, headers }
    this.wake()
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.total += chunk.length
    if (this.total > this.limitBytes) {
      this.fail(failed("too_large", this.url, `more than ${this.limitBytes} bytes`, this.received?.status))
      return
    }
    this.unread += chunk.length
    this.chunks.push(chunk)
    if (this.unread > highWaterBytes) controller.pause()
    this.wake()
  }

  onResponseEnd(): void {
    this.over(Option.none())
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    this.over(Option.some(broken(this.url, error, this.received?.status)))
  }

  private over(outcome: Option.Option<FetchFailed>): void {
    this.outcome ??= outcome
    this.wake()
  }

  private later<A, E>(again: () => Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.async((resume) => {
      this.waiting = () => resume(again())
      return Effect.sync(() => {
        this.waiting = undefined
      })
    })
  }

  private wake(): void {
    const waiting = this.waiting
    this.waiting = undefined
    waiting?.()
  }
}
