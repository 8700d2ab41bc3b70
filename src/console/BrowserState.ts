import { parseHash, type Route, withQuery } from "./Route.ts"
import { makeStore, useStore } from "./Store.ts"

export const themes = ["auto", "light", "dark"] as const
type Theme = (typeof themes)[number]

const storageKey = "gateway-theme"

const readTheme = (): Theme => {
  try {
    return themes.find((theme) => theme === localStorage.getItem(storageKey)) ?? "auto"
  } catch {
    return "auto"
  }
}

const currentTheme = makeStore<Theme>(readTheme())
const applyTheme = (theme: Theme) => document.documentElement.setAttribute("data-theme", theme)

applyTheme(currentTheme.get())
currentTheme.subscribe(applyTheme)

export const useTheme = (): Theme => useStore(currentTheme)

export const setTheme = (theme: Theme): void => {
  currentTheme.set(theme)
  try {
    localStorage.setItem(storageKey, theme)
  } catch {
    // Without storage the theme lasts until the page closes.
  }
}

const currentRoute = makeStore(parseHash(location.hash))

let navigationCount = 0

addEventListener("hashchange", () => {
  navigationCount++
  currentRoute.set(parseHash(location.hash))
})

/** Returns whether the address has changed since the page loaded. */
export const wasNavigated = (): boolean => navigationCount > 0

export const useRoute = (): Route => useStore(currentRoute)

/** Changes filters without adding an entry to the browser's history. */
export const replaceQuery = (query: Parameters<typeof withQuery>[1]): void =>
  location.replace(withQuery(currentRoute.get(), query))
