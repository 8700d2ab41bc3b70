export interface Listed {
  index: number
}

/** A Set replaces its table often; in V8's old space dead tables keep young garbage alive. */
export class UnorderedList<A extends Listed> implements Iterable<A> {
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
