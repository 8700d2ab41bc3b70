import * as Pg from "pg"
import { hideProcessId } from "../node/Postgres.ts"
import { partsOfLimit } from "../services/runtime/EventLoop.ts"

/** A replica, or a primary that has become one. */
const readOnly = "25006"

const oftenEnough = 10
const replanFactor = 4
const maxStatements = 200

interface Statement {
  uses: number
  prepareAt: number
  name: string | undefined
}

const isCursor = (query: unknown) => typeof query === "object" && query !== null && "submit" in query

/**
 * Cuts itself when a query stays unanswered, for longer where our own event loop is late: the driver's `query_timeout`
 * would pool it with the query still running.
 */
export class PooledClient extends Pg.Client {
  readonly #statements = new Map<string, Statement>()
  #names = 0
  #unanswered = 0
  #isRefused = false
  #isStale = false
  #clock: NodeJS.Timeout | undefined
  #partsPassed = 0

  /** `onStale`: the server changed or is silent, which may hold for other connections too. */
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
      // Reads an answer that arrived while this process was suspended.
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
    // A proxy keeps the overloads of `query`.
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

  #use(text: string, deallocate: (name: string) => void): string | undefined {
    const statement = this.#statements.get(text) ?? { uses: 0, prepareAt: oftenEnough, name: undefined }
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

  /** An error counts as the answer. */
  get isReusable() {
    return !this.#isStale && (this.#unanswered === 0 || this.#isRefused)
  }
}
