import { useEffect, useState } from "preact/hooks"
import { link } from "../Route.ts"
import { useMembership } from "../Session.ts"
import { useViews } from "../views.ts"
import { type Found, lookUp, type Match } from "./lookUp.ts"

/** Typing waits this long for the next key. */
const typingMillis = 150
const minLength = 2

/** The views that the text names, at once, and what the gateway finds, when it has. */
export const useSearch = (text: string): Found & { readonly isPending: boolean } => {
  const [found, setFound] = useState<Found & { readonly text: string }>({ text: "", matches: [], error: undefined })
  const isMember = useMembership() !== undefined
  const commands = useViews().map(
    ({ key, path, title }): Match => ({
      kind: "Views",
      id: title,
      text: title,
      details: [`g ${key}`],
      href: link([path])
    })
  )
  const isAsked = text.length >= minLength
  useEffect(() => {
    if (!isAsked) return
    const controller = new AbortController()
    const timer = setTimeout(async () => {
      const answer = await lookUp(text, isMember, controller.signal)
      if (!controller.signal.aborted) setFound({ text, ...answer })
    }, typingMillis)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, isAsked, isMember])
  const named = commands.filter((command) => command.text.toLowerCase().includes(text.toLowerCase()))
  return isAsked && found.text === text
    ? { matches: [...named, ...found.matches], error: found.error, isPending: false }
    : { matches: named, error: undefined, isPending: isAsked }
}
