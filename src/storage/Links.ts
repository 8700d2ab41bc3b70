import { Option } from "effect"
import { parseMediaName } from "../domain/Media.ts"

const isPublic = (name: string) => parseMediaName(name)?.visibility === "public"

/** Ignores what a link says after `?` or `#`. */
export const links = (publicUrl: string) => ({
  link: (name: string): string => {
    if (!isPublic(name)) throw new Error("Only public media have a link.")
    return `${publicUrl}/${name}`
  },
  named: (link: string): Option.Option<string> => {
    if (!link.startsWith(`${publicUrl}/`)) return Option.none()
    const name = link.slice(publicUrl.length + 1).replace(/[?#].*$/s, "")
    return isPublic(name) ? Option.some(name) : Option.none()
  }
})
