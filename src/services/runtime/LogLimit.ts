const everyMillis = 60_000

/** One line a minute. */
export class LogLimit {
  #loggedAt = Number.NEGATIVE_INFINITY
  #omitted = 0

  /** The number of lines left out; undefined if this one is left out too. */
  enter(now: number): number | undefined {
    if (now - this.#loggedAt < everyMillis) {
      this.#omitted += 1
      return undefined
    }
    const omitted = this.#omitted
    this.#loggedAt = now
    this.#omitted = 0
    return omitted
  }
}
