import type * as Pg from "pg"
import { ImpatientClient } from "./ImpatientClient.ts"

const oftenEnough = 10
const replanFactor = 4
const mostTexts = 200

interface Known {
  uses: number
  /** The use at which it is prepared, again or for the first time. */
  prepareAt: number
  name: string | undefined
}

/**
 * A pool's connection that prepares what it is asked again and again. The server then neither parses nor plans it
 * anew, which for the ledger's statements is more than half of its work. What is asked rarely stays unprepared.
 *
 * A plan is made for tables as large as they are then, and most of them grow with every use: it is made anew each time
 * that the uses have multiplied.
 */
export class PreparingClient extends ImpatientClient {
  readonly #known = new Map<string, Known>()
  #names = 0

  constructor(limitMillis: number, config?: Pg.ClientConfig, onStale?: () => void) {
    super(limitMillis, config, onStale)
    this.query = new Proxy(this.query.bind(this), {
      apply: (query, self, args: ReadonlyArray<unknown>) => {
        const [text, values, ...rest] = args
        // Without values a text may hold several statements, which cannot be prepared.
        if (typeof text !== "string" || !Array.isArray(values) || values.length === 0) {
          return Reflect.apply(query, self, args)
        }
        const known = this.#recall(text)
        known.uses += 1
        if (known.uses === known.prepareAt) {
          if (known.name !== undefined) query(`DEALLOCATE ${known.name}`, () => {})
          known.name = `gateway_${++this.#names}`
          known.prepareAt *= replanFactor
        }
        const { name } = known
        return Reflect.apply(query, self, name === undefined ? args : [{ name, text, values }, ...rest])
      }
    })
  }

  #recall(text: string): Known {
    const known = this.#known.get(text) ?? { uses: 0, prepareAt: oftenEnough, name: undefined }
    if (!this.#known.has(text)) {
      if (this.#known.size >= mostTexts) this.#forgetRare()
      if (this.#known.size < mostTexts) this.#known.set(text, known)
    }
    return known
  }

  #forgetRare() {
    for (const [text, { name }] of this.#known) if (name === undefined) this.#known.delete(text)
  }
}
