const everyMillis = 60_000

/** Lets one line a minute through and counts the others. Times are milliseconds. */
export class LogLimit {
  #loggedAt = Number.NEGATIVE_INFINITY
  #omitted = 0

  /** How many lines were left out since the last one; undefined where this one is left out too. */
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
