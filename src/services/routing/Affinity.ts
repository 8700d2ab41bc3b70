/** Providers keep a prompt's cache for five to ten minutes after its last use. */
const rememberedMillis = 600_000
const maxInGeneration = 25_000

interface LastRoute {
  readonly route: string
  /** When the conversation came to the route. */
  readonly since: number
  readonly usedAt: number
}

/** Which route answered each conversation last, and so has its prompt cache. Times are on the monotonic clock. */
export class Affinity {
  // Two generations: a single Map is slow at dropping its oldest entries one by one.
  #recent = new Map<string, LastRoute>()
  #older: ReadonlyMap<string, LastRoute> = new Map()
  #beganAt = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  find(conversation: string, now: number): LastRoute | undefined {
    const last = this.#recent.get(conversation) ?? this.#older.get(conversation)
    return last !== undefined && now - last.usedAt < rememberedMillis ? last : undefined
  }

  remember(conversation: string, route: string, now: number): void {
    const last = this.find(conversation, now)
    if (this.#recent.size >= maxInGeneration || now - this.#beganAt >= rememberedMillis) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#beganAt = now
    }
    this.#recent.set(conversation, { route, since: last?.route === route ? last.since : now, usedAt: now })
  }
}

/** Not for ever: the routes that come first may be cheaper than one to which a failure brought the conversation. */
export const overridesPreference = ({ since }: LastRoute, now: number): boolean => now - since < rememberedMillis
