/** What a roster can hold: in one roster at a time. */
export interface Listed {
  index: number
}

/**
 * Those that are there now, in no order, where every request comes and goes. A Set makes a new table every few dozen of
 * them; from an old table that waits for the next full garbage collection hangs the next one, and on it whatever it
 * held, all of which the young collector must then copy.
 */
export class Roster<A extends Listed> implements Iterable<A> {
  readonly #all: Array<A> = []

  get size(): number {
    return this.#all.length
  }

  has(one: A): boolean {
    return this.#all[one.index] === one
  }

  add(one: A): void {
    one.index = this.#all.push(one) - 1
  }

  delete(one: A): boolean {
    if (!this.has(one)) return false
    const last = this.#all.pop()
    if (last !== undefined && last !== one) {
      this.#all[one.index] = last
      last.index = one.index
    }
    one.index = -1
    return true
  }

  [Symbol.iterator](): Iterator<A> {
    return this.#all.slice()[Symbol.iterator]()
  }
}
