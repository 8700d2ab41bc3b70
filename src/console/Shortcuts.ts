import { useEffect, useState } from "preact/hooks"
import { link } from "./Route.ts"
import { views } from "./views.ts"

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches("input, select, textarea"))

/** Time to press the second key after `g`. */
const chordMillis = 1500

/** Returns whether the list of shortcuts is open, and how to close it. */
export const useShortcuts = (): readonly [isOpen: boolean, close: () => void] => {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    let chordUntil = 0
    const press = (event: KeyboardEvent) => {
      const { key, target } = event
      if (key === "Escape" && target instanceof HTMLElement && isTyping(target)) target.blur()
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(target)) return
      if (document.querySelector("dialog[open]") !== null) return
      const isChord = performance.now() < chordUntil
      const view = views.find((one) => one.key === key)
      chordUntil = key === "g" ? performance.now() + chordMillis : 0
      if (isChord && view !== undefined) location.hash = link([view.path])
      if (key === "?") setOpen(true)
      if (key !== "/") return
      event.preventDefault()
      document.querySelector<HTMLElement>("[data-filter]")?.focus()
    }
    addEventListener("keydown", press)
    return () => removeEventListener("keydown", press)
  }, [])
  return [isOpen, () => setOpen(false)]
}
