import * as Pg from "pg"

/** A replica, or a primary that has become one, refuses to write. */
const readOnly = "25006"

/** Uses of a statement before it is prepared, and the factor between those at which it is planned anew. */
const oftenEnough = 10
const replanFactor = 4
const mostStatements = 200

interface Statement {
  uses: number
  /** The use at which it is prepared, again or for the first time. */
  prepareAt: number
  name: string | undefined
}

const isCursor = (query: unknown) => typeof query === "object" && query !== null && "submit" in query

/**
 * A pool's connection that cuts itself when the server leaves a query unanswered for too long. The driver's own
 * `query_timeout` would give it back to the pool with the query still running, for the next query to wait behind.
 *
 * It prepares what it is asked often: parsing and planning are more than half of the server's work for the ledger's
 * statements. A plan is made for tables of the size that they have then, and is made anew as the uses multiply.
 *
 * It hides its backend's process id from the SQL client, which would answer interruption by asking the server to
 * cancel whatever that backend runs by the time the request arrives. The pool ends a connection that is given back in
 * the middle of a query instead.
 */
export class PooledClient extends Pg.Client {
  readonly #statements = new Map<string, Statement>()
  #names = 0
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
    const count = () => {
      this.#unanswered += 1
      if (this.#unanswered === 1) this.#clock = this.#clock?.refresh() ?? setTimeout(lapse, limitMillis).unref()
    }
    const send = super.query.bind(this)
    const deallocate = (name: string) => {
      count()
      send(`DEALLOCATE ${name}`, () => {})
    }
    // A proxy keeps the many overloads of `query`.
    this.query = new Proxy(send, {
      apply: (query, self, args: ReadonlyArray<unknown>) => {
        const [text, values, ...rest] = args
        // Without values a text may hold several statements, which cannot be prepared.
        const isPreparable = typeof text === "string" && Array.isArray(values) && values.length > 0
        const name = isPreparable ? this.#use(text, deallocate) : undefined
        if (!isCursor(text)) count()
        return Reflect.apply(query, self, name === undefined ? args : [{ name, text, values }, ...rest])
      }
    })
  }

  /** Counts a use of a statement and returns its name, once it has one. */
  #use(text: string, deallocate: (name: string) => void): string | undefined {
    const statement = this.#statements.get(text) ?? { uses: 0, prepareAt: oftenEnough, name: undefined }
    if (!this.#statements.has(text)) {
      if (this.#statements.size >= mostStatements) this.#forgetRare()
      if (this.#statements.size < mostStatements) this.#statements.set(text, statement)
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

  /** Keeps the connection from being used again once what runs on it is over. */
  retire() {
    this.#isStale = true
  }

  /** Whether the next user would find it in order: no answer is still to come, an error counting as one. */
  get isReusable() {
    return !this.#isStale && (this.#unanswered === 0 || this.#isRefused)
  }
}
