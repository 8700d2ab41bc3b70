import * as Pg from "pg"

const isCursor = (query: unknown) => typeof query === "object" && query !== null && "submit" in query

/**
 * A connection that is cut when the server leaves a query unanswered for too long. The driver's own `query_timeout`
 * would hand the connection back to the pool with the query still running on it, for the next query to wait behind.
 */
export const impatientClient = (limitMillis: number) =>
  class ImpatientClient extends Pg.Client {
    constructor(config?: Pg.ClientConfig) {
      super(config)
      let unanswered = 0
      let clock: NodeJS.Timeout | undefined
      const lapse = () => {
        if (unanswered > 0) this.connection.stream.destroy(new Error(`No answer within ${limitMillis} ms`))
      }
      this.connection.on("readyForQuery", () => {
        unanswered = Math.max(0, unanswered - 1)
        if (unanswered > 0) clock?.refresh()
      })
      this.on("error", () => {})
      this.on("end", () => clearTimeout(clock))
      // A proxy keeps the many overloads of `query`.
      this.query = new Proxy(super.query.bind(this), {
        apply: (query, self, args) => {
          if (!isCursor(args[0])) {
            unanswered += 1
            if (unanswered === 1) clock = clock?.refresh() ?? setTimeout(lapse, limitMillis).unref()
          }
          return Reflect.apply(query, self, args)
        }
      })
    }
  }
