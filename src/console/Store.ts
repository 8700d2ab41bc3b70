import { useEffect, useState } from "preact/hooks"

/** A value that outlives the components that show it. */
interface Store<A> {
  readonly get: () => A
  readonly set: (value: A) => void
  readonly subscribe: (listener: (value: A) => void) => () => void
}

export const makeStore = <A>(initial: A): Store<A> => {
  let current = initial
  const listeners = new Set<(value: A) => void>()
  return {
    get: () => current,
    set: (value) => {
      current = value
      for (const listener of listeners) listener(value)
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    }
  }
}

export const useStore = <A>(store: Store<A>): A => {
  const [value, setValue] = useState(store.get)
  useEffect(() => {
    const update = (next: A) => setValue(() => next)
    update(store.get())
    return store.subscribe(update)
  }, [store])
  return value
}
