import type * as Pg from "pg"
import { ImpatientClient } from "./ImpatientClient.ts"

const oftenEnough = 10
const mostTexts = 200

/**
 * A pool's connection that prepares what it is asked again and again. The server then neither parses nor plans it
 * anew, which for the ledger's statements is more than half of its work. What is asked rarely stays unprepared.
 */
export class PreparingClient extends ImpatientClient {
  readonly #uses = new Map<string, number>()
  readonly #names = new Map<string, string>()

  constructor(limitMillis: number, config?: Pg.ClientConfig) {
    super(limitMillis, config)
    this.query = new Proxy(this.query.bind(this), {
      apply: (query, self, args: ReadonlyArray<unknown>) => {
        const [text, values, ...rest] = args
        const name = typeof text === "string" && Array.isArray(values) ? this.#nameOf(text, values) : undefined
        return Reflect.apply(query, self, name === undefined ? args : [{ name, text, values }, ...rest])
      }
    })
  }

  /** Undefined without values: such a text may hold several statements. */
  #nameOf(text: string, values: ReadonlyArray<unknown>): string | undefined {
    if (values.length === 0) return undefined
    const known = this.#names.get(text)
    if (known !== undefined) return known
    const uses = (this.#uses.get(text) ?? 0) + 1
    if (uses < oftenEnough) {
      if (this.#uses.size >= mostTexts) this.#uses.clear()
      this.#uses.set(text, uses)
      return undefined
    }
    if (this.#names.size >= mostTexts) return undefined
    const name = `gateway_${this.#names.size + 1}`
    this.#names.set(text, name)
    this.#uses.delete(text)
    return name
  }
}
