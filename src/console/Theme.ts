import { makeStore, useStore } from "./Store.ts"

export const themes = ["auto", "light", "dark"] as const
export type Theme = (typeof themes)[number]

const name = "gateway-theme"

const readTheme = (): Theme => {
  try {
    return themes.find((theme) => theme === localStorage.getItem(name)) ?? "auto"
  } catch {
    return "auto"
  }
}

const current = makeStore<Theme>(readTheme())
const show = (theme: Theme) => document.documentElement.setAttribute("data-theme", theme)

show(current.get())
current.subscribe(show)

export const useTheme = (): Theme => useStore(current)

export const setTheme = (theme: Theme): void => {
  current.set(theme)
  try {
    localStorage.setItem(name, theme)
  } catch {
    // A page without storage keeps it until it is closed.
  }
}
