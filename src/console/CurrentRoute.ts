import { parseHash, type Route, withQuery } from "./Route.ts"
import { makeStore, useStore } from "./Store.ts"

const current = makeStore(parseHash(location.hash))

addEventListener("hashchange", () => current.set(parseHash(location.hash)))

export const useRoute = (): Route => useStore(current)

/** Changes filters without a new entry in the browser's history. */
export const replaceQuery = (changes: Parameters<typeof withQuery>[1]): void =>
  location.replace(withQuery(current.get(), changes))
