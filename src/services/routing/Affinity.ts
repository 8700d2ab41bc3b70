/** Providers keep a prompt's cache for five to ten minutes after its last use. */
const rememberedMillis = 600_000
const mostConversations = 50_000

export interface LastRoute {
  readonly route: string
  /** When the conversation came to the route. */
  readonly since: number
  readonly usedAt: number
}

/** Which route answered each conversation last, and so has its prompt cache. Times are on the monotonic clock. */
export class Affinity {
  /** In the order of their last use. */
  readonly #conversations = new Map<string, LastRoute>()

  get size(): number {
    return this.#conversations.size
  }

  find(conversation: string, now: number): LastRoute | undefined {
    const last = this.#conversations.get(conversation)
    return last !== undefined && now - last.usedAt < rememberedMillis ? last : undefined
  }

  remember(conversation: string, route: string, now: number): void {
    const last = this.find(conversation, now)
    this.#conversations.delete(conversation)
    this.#conversations.set(conversation, { route, since: last?.route === route ? last.since : now, usedAt: now })
    for (const [oldest, { usedAt }] of this.#conversations) {
      if (this.size <= mostConversations && now - usedAt < rememberedMillis) break
      this.#conversations.delete(oldest)
    }
  }
}

/** Not for ever: the routes that come first may be cheaper than one to which a failure brought the conversation. */
export const overridesPreference = ({ since }: LastRoute, now: number): boolean => now - since < rememberedMillis
