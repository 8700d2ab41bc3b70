import { Effect } from "effect"
import * as Pg from "pg"
import { failConnecting, hideProcessId, isWaitTimeout, judgeConnecting } from "../node/Postgres.ts"
import { partsOfLimit } from "../services/runtime/EventLoop.ts"
import { DatabaseLost } from "../services/sql/Outage.ts"
import { applySettings, type Server } from "./DatabaseServer.ts"

/** The SQLSTATE of a write to a replica, which a former primary may have become. */
const readOnly = "25006"

const prepareAfterUses = 10
const replanFactor = 4
const maxStatements = 200

interface Statement {
  uses: number
  prepareAt: number
  name: string | undefined
}

const isCursor = (query: unknown) => typeof query === "object" && query !== null && "submit" in query

/**
 * Closes its connection if the server does not respond to a query in time. Waits longer if our own event loop is late.
 * Replaces the driver's `query_timeout`, which would return a connection to the pool while its query still runs.
 */
class PooledClient extends Pg.Client {
  readonly #statements = new Map<string, Statement>()
  #names = 0
  #unanswered = 0
  #isRefused = false
  #isStale = false
  #clock: NodeJS.Timeout | undefined
  #partsPassed = 0

  /** Calls `onStale` if the server became read-only or does not respond, because other connections may be affected too. */
  constructor(limitMillis: number, config?: Pg.ClientConfig, onStale: () => void = () => {}) {
    super(config)
    hideProcessId(this)
    const cut = () => {
      if (this.#unanswered === 0 || this.#partsPassed < partsOfLimit) return
      this.connection.stream.destroy(new Error(`No answer within ${limitMillis} ms`))
      onStale()
    }
    const passPart = () => {
      this.#partsPassed += 1
      if (this.#partsPassed < partsOfLimit) this.#clock?.refresh()
      // Cuts only after the event loop has read a response that may have arrived while this process was suspended.
      else setImmediate(cut)
    }
    const startClock = () => {
      this.#partsPassed = 0
      this.#clock = this.#clock?.refresh() ?? setTimeout(passPart, limitMillis / partsOfLimit).unref()
    }
    this.connection.on("errorMessage", ({ code }: Pg.DatabaseError) => {
      this.#isRefused = true
      if (code === readOnly) onStale()
    })
    this.connection.on("readyForQuery", () => {
      this.#isRefused = false
      this.#unanswered = Math.max(0, this.#unanswered - 1)
      if (this.#unanswered > 0) startClock()
    })
    this.on("error", () => {})
    this.on("end", () => clearTimeout(this.#clock))
    const count = () => {
      this.#unanswered += 1
      if (this.#unanswered === 1) startClock()
    }
    const send = super.query.bind(this)
    const deallocate = (name: string) => {
      count()
      send(`DEALLOCATE ${name}`, () => {})
    }
    // Uses a proxy, because a wrapper function would lose the overloads of `query`.
    this.query = new Proxy(send, {
      apply: (query, self, args: ReadonlyArray<unknown>) => {
        const [text, values, ...rest] = args
        // A text without values may contain several statements, which cannot be prepared.
        const isPreparable = typeof text === "string" && Array.isArray(values) && values.length > 0
        const name = isPreparable ? this.#use(text, deallocate) : undefined
        if (!isCursor(text)) count()
        return Reflect.apply(query, self, name === undefined ? args : [{ name, text, values }, ...rest])
      }
    })
  }

  #use(text: string, deallocate: (name: string) => void): string | undefined {
    const statement = this.#statements.get(text) ?? { uses: 0, prepareAt: prepareAfterUses, name: undefined }
    if (!this.#statements.has(text)) {
      if (this.#statements.size >= maxStatements) this.#forgetRare()
      if (this.#statements.size < maxStatements) this.#statements.set(text, statement)
    }
    statement.uses += 1
    if (statement.uses === statement.prepareAt) {
      if (statement.name !== undefined) deallocate(statement.name)
      statement.name = `gateway_${++this.#names}`
      statement.prepareAt *= replanFactor
    }
    return statement.name
  }

  #forgetRare() {
    for (const [text, { name }] of this.#statements) if (name === undefined) this.#statements.delete(text)
  }

  retire() {
    this.#isStale = true
  }

  /** False while a query has no response. An error also counts as a response. */
  get isReusable() {
    return !this.#isStale && (this.#unanswered === 0 || this.#isRefused)
  }
}

/** Milliseconds after which the server ends an idle transaction, because its process may be suspended and hold locks. */
const maxIdleInTransaction = 2_000

/**
 * Gives the server a shorter time limit than our own, so a statement that we report as failed cannot succeed later. If a new
 * connection is refused, a serving pool opens no more until `accept`, and keeps its open ones.
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
   * A serving pool reuses query plans, because planning takes longer than running. It avoids sequential scans, because a plan
   * that was made for a table of one page would still scan the table when it has thousands, until the next ANALYZE.
   */
  constructor(config: Pg.PoolConfig, limitMillis: number, isServing: boolean) {
    const open = new Set<PooledClient>()
    const ready = new Set<Pg.ClientBase>()
    super({
      ...config,
      Client: class extends PooledClient {
        constructor(options?: Pg.ClientConfig) {
          // A new connection without a response is no sign of an outage: a full pooler ignores new connections while
          // the others work.
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
        await applySettings(client, {
          statement_timeout: String(Math.ceil(limitMillis * 0.9)),
          idle_in_transaction_session_timeout: String(maxIdleInTransaction),
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

  /** The number of open connections that can run a statement, either now or after their current one. */
  get usable() {
    return this.#ready.size
  }

  /** The error of all statements while no connection can run one; otherwise undefined. */
  get unavailable() {
    return this.#lost ?? (this.usable === 0 ? this.#refusal : undefined)
  }

  /** The reason that `/readyz` shows, without the server's message. Undefined if the database works. */
  get unreadyReason() {
    if (this.#lost !== undefined) return "the database is unreachable"
    return this.#refusal === undefined ? undefined : "the database refuses new connections"
  }

  /** Completes when a new connection has been refused. */
  get awaitRefusal() {
    return this.#refused.await
  }

  #judge(error: Error): Error | undefined {
    // The error alone does not show this, because a wait for a new connection has the same timeout.
    const isExhausted = isWaitTimeout(error) && this.totalCount <= this.usable
    if (error instanceof DatabaseLost || this.ending || isExhausted) return error
    if (this.#isServing) this.limit()
    // Without an error to report, the caller waits for an open connection. If none is open, the refusal is an outage.
    return this.#isServing && this.usable > 0 ? undefined : new Error(error.message, { cause: error })
  }

  /** Opens no more connections, and does not close idle ones. */
  limit() {
    this.options.max = Math.max(1, this.usable)
    this.options.min = this.options.max
    this.#refused.unsafeOpen()
  }

  /** Records a refusal that was confirmed after `limit`. */
  refuse(reason: string) {
    this.#refusal = new DatabaseLost(`The database refuses new connections: ${reason}`)
  }

  /** Reverts `limit` and `refuse`, because new connections are accepted again. */
  accept() {
    this.#refused.unsafeClose()
    this.#refusal = undefined
    this.options.max = this.#max
    this.options.min = 0
  }

  /** Uses these credentials for new connections. Closes open ones when their current statements end. */
  adopt(server: Server) {
    Object.assign(this.options, server)
    this.retire()
  }

  /**
   * Aborts connection attempts that take long, such as at a full pooler, unless there is no open connection for their
   * callers.
   */
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
      if (this.#idle.has(client)) client.connection.stream.destroy(new Error("The connection is being replaced"))
    }
  }

  cut(error: Error) {
    for (const client of this.#open) client.connection.stream.destroy(error)
  }

  lose(reason: string) {
    this.#lost = new DatabaseLost(`The database is unreachable: ${reason}`)
    this.cut(this.#lost)
  }

  regain() {
    this.#lost = undefined
    this.accept()
  }
}
