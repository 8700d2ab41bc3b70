import { parseHash, type Route, withQuery } from "./Route.ts"
import { makeStore, useStore } from "./Store.ts"

const current = makeStore(parseHash(location.hash))

let changes = 0

addEventListener("hashchange", () => {
  changes++
  current.set(parseHash(location.hash))
})

/** False for the view that the page began with. */
export const wasNavigated = (): boolean => changes > 0

export const useRoute = (): Route => useStore(current)

/** Changes filters without a new entry in the browser's history. */
export const replaceQuery = (query: Parameters<typeof withQuery>[1]): void =>
  location.replace(withQuery(current.get(), query))
