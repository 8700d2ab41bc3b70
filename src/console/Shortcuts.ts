import { useEffect, useState } from "preact/hooks"
import { link } from "./Route.ts"
import { useViews } from "./views.ts"

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"))

/** Time to press the second key after `g`. */
const chordMillis = 1500

type Opened = "search" | "shortcuts"

const opens: Readonly<Record<string, Opened>> = { "/": "search", "?": "shortcuts" }

const isSearch = ({ altKey, ctrlKey, key, metaKey, shiftKey }: KeyboardEvent): boolean =>
  (ctrlKey || metaKey) && !altKey && !shiftKey && key.toLowerCase() === "k"

/** Returns which dialog the keys have opened, and how to open or close one. */
export const useShortcuts = () => {
  const [opened, open] = useState<Opened>()
  const views = useViews()
  useEffect(() => {
    let chordUntil = 0
    const press = (event: KeyboardEvent) => {
      const { key, target } = event
      if (isSearch(event)) event.preventDefault()
      if (key === "Escape" && target instanceof HTMLElement && isTyping(target)) target.blur()
      if (document.querySelector("dialog[open]") !== null) return
      if (isSearch(event)) open("search")
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return
      const isChord = performance.now() < chordUntil
      const view = views.find((one) => one.key === key)
      chordUntil = key === "g" ? performance.now() + chordMillis : 0
      if (isChord && view !== undefined) location.hash = link([view.path])
      if (key === "/" || key === "f") event.preventDefault()
      if (opens[key] !== undefined) open(opens[key])
      if (key === "f") document.querySelector<HTMLElement>("[data-filter]")?.focus()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [views])
  return { opened, open, close: () => open(undefined) } as const
}
