import { Effect } from "effect"
import * as Pg from "pg"
import { failConnecting, isWaitTimeout, judgeConnecting } from "../node/Postgres.ts"
import { DatabaseLost } from "../services/sql/Outage.ts"
import type { Server } from "./DatabaseServer.ts"
import { PooledClient } from "./PooledClient.ts"
import * as Session from "./Session.ts"

/** Milliseconds that locks outlive a suspended or disconnected process. */
const longestIdleInTransaction = 2_000

/**
 * The server's time limit is shorter than ours, so a statement that we report as failed never runs later. If a new
 * connection is refused, a serving pool keeps and uses its open ones until `accept`.
 */
export class GuardedPool extends Pg.Pool {
  readonly #open: ReadonlySet<PooledClient>
  readonly #ready: ReadonlySet<Pg.ClientBase>
  readonly #startedAt = new WeakMap<PooledClient, number>()
  readonly #idle = new Set<Pg.ClientBase>()
  readonly #isServing: boolean
  readonly #max: number
  readonly #refused = Effect.unsafeMakeLatch(false)
  #lost: DatabaseLost | undefined
  #refusal: DatabaseLost | undefined
  #answers = 0

  /**
   * `isServing`: statements recur, and planning one takes longer than running it. A plan made for a table of one page would
   * still read it whole when it has grown to thousands, until the next ANALYZE.
   */
  constructor(config: Pg.PoolConfig, limitMillis: number, isServing: boolean) {
    const open = new Set<PooledClient>()
    const ready = new Set<Pg.ClientBase>()
    super({
      ...config,
      Client: class extends PooledClient {
        constructor(options?: Pg.ClientConfig) {
          // A full pooler does not answer a new connection, although its other connections work.
          super(limitMillis, options, () => ready.has(this) && retire())
          if (unavailable() === undefined) open.add(this)
          start(this)
          this.on("end", () => {
            open.delete(this)
            ready.delete(this)
          })
          this.connection.on("readyForQuery", countAnswer)
          this.connect = failConnecting(super.connect.bind(this), unavailable)
        }
      },
      onConnect: async (client) => {
        await Session.configure(client, {
          statement_timeout: String(Math.ceil(limitMillis * 0.9)),
          idle_in_transaction_session_timeout: String(longestIdleInTransaction),
          jit: "off",
          enable_seqscan: isServing ? "off" : "on",
          plan_cache_mode: isServing ? "force_generic_plan" : "auto"
        })
        if (client instanceof PooledClient && open.has(client)) ready.add(client)
      }
    })
    const unavailable = () => this.unavailable
    const retire = () => this.retire()
    const start = (client: PooledClient) => this.#startedAt.set(client, performance.now())
    const countAnswer = () => {
      this.#answers += 1
    }
    this.#open = open
    this.#ready = ready
    this.#isServing = isServing
    this.#max = this.options.max
    this.on("error", () => {})
    this.on("acquire", (client) => this.#idle.delete(client))
    this.on("remove", (client) => this.#idle.delete(client))
    this.on("release", (_, client) => {
      if (client instanceof PooledClient && !client.isReusable) client.end(() => {})
      else this.#idle.add(client)
    })
    const connect = failConnecting(super.connect.bind(this), unavailable)
    this.connect = judgeConnecting(connect, (error) => this.#judge(error))
  }

  get answers() {
    return this.#answers
  }

  /** The number of connections that can run a statement, now or when they are released. */
  get usable() {
    return this.#ready.size
  }

  /** The reason that no statement can be sent. */
  get unavailable() {
    return this.#lost ?? (this.usable === 0 ? this.#refusal : undefined)
  }

  /** The reason for `/readyz`, without the server's message. */
  get unreadyReason() {
    if (this.#lost !== undefined) return "the database is out of reach"
    return this.#refusal === undefined ? undefined : "the database refuses new connections"
  }

  /** Returns once a new connection has been refused. */
  get awaitRefusal() {
    return this.#refused.await
  }

  #judge(error: Error): Error | undefined {
    // The same timeout also ends a wait for a new connection.
    const isExhausted = isWaitTimeout(error) && this.totalCount <= this.usable
    if (error instanceof DatabaseLost || this.ending || isExhausted) return error
    if (this.#isServing) this.limit()
    // Another connection can serve the caller. Without one, any refusal is an outage.
    return this.#isServing && this.usable > 0 ? undefined : new Error(error.message, { cause: error })
  }

  /** Stops opening connections, and keeps idle ones open. */
  limit() {
    this.options.max = Math.max(1, this.usable)
    this.options.min = this.options.max
    this.#refused.unsafeOpen()
  }

  /** Records the refusal once it is confirmed, after `limit`. */
  refuse(reason: string) {
    this.#refusal = new DatabaseLost(`The database refuses new connections: ${reason}`)
  }

  /** Undoes `limit` and `refuse`. */
  accept() {
    this.#refused.unsafeClose()
    this.#refusal = undefined
    this.options.max = this.#max
    this.options.min = 0
  }

  /** Uses these credentials for new connections, those of LISTEN too, and closes open ones when they are released. */
  adopt(server: Server) {
    Object.assign(this.options, server)
    this.retire()
  }

  /** Ends slow attempts to connect, as behind a full pooler, if an open connection can serve their callers. */
  cutSlow(millis: number) {
    if (this.usable === 0) return
    for (const client of this.#open) {
      const isSlow = performance.now() - (this.#startedAt.get(client) ?? 0) > millis
      if (isSlow && !this.#ready.has(client)) client.connection.stream.destroy(new Error("it does not answer"))
    }
  }

  retire() {
    for (const client of this.#open) {
      client.retire()
      if (this.#idle.has(client)) client.connection.stream.destroy(new Error("The connection is made anew"))
    }
  }

  cut(error: Error) {
    for (const client of this.#open) client.connection.stream.destroy(error)
  }

  lose(reason: string) {
    this.#lost = new DatabaseLost(`The database is out of reach: ${reason}`)
    this.cut(this.#lost)
  }

  regain() {
    this.#lost = undefined
    this.accept()
  }
}
