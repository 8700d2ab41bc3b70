import * as Pg from "pg"

/** A replica, or a primary that has become one, refuses to write. */
const readOnly = "25006"

const isCursor = (query: unknown) => typeof query === "object" && query !== null && "submit" in query

/**
 * A pool's connection that cuts itself when the server leaves a query unanswered for too long. The driver's own
 * `query_timeout` would give it back to the pool with the query still running, for the next query to wait behind.
 *
 * It also hides its backend's process id from the SQL client, which would answer interruption by asking the server to
 * cancel whatever that backend runs by the time the request arrives, maybe somebody else's statement. The pool ends
 * a connection that is given back in the middle of a query instead.
 */
export class ImpatientClient extends Pg.Client {
  #unanswered = 0
  #isRefused = false
  #isStale = false
  #clock: NodeJS.Timeout | undefined

  /** `onStale`: the server has become another one or is not heard, which may hold for other connections too. */
  constructor(limitMillis: number, config?: Pg.ClientConfig, onStale: () => void = () => {}) {
    super(config)
    Object.defineProperty(this, "processID", { get: () => undefined, set: () => {} })
    const cut = () => {
      if (this.#unanswered === 0) return
      this.connection.stream.destroy(new Error(`No answer within ${limitMillis} ms`))
      onStale()
    }
    // The answer may have come while this process stood still: first let it be read.
    const lapse = () => setImmediate(cut)
    this.connection.on("errorMessage", ({ code }: Pg.DatabaseError) => {
      this.#isRefused = true
      if (code === readOnly) onStale()
    })
    this.connection.on("readyForQuery", () => {
      this.#isRefused = false
      this.#unanswered = Math.max(0, this.#unanswered - 1)
      if (this.#unanswered > 0) this.#clock?.refresh()
    })
    this.on("error", () => {})
    this.on("end", () => clearTimeout(this.#clock))
    // A proxy keeps the many overloads of `query`.
    this.query = new Proxy(super.query.bind(this), {
      apply: (query, self, args) => {
        if (!isCursor(args[0])) {
          this.#unanswered += 1
          if (this.#unanswered === 1) this.#clock = this.#clock?.refresh() ?? setTimeout(lapse, limitMillis).unref()
        }
        return Reflect.apply(query, self, args)
      }
    })
  }

  /** Keeps the connection from being used again once what runs on it is over. */
  retire() {
    this.#isStale = true
  }

  /** Whether the next user would find it in order: no answer is still to come, an error counting as one. */
  get isReusable() {
    return !this.#isStale && (this.#unanswered === 0 || this.#isRefused)
  }
}
