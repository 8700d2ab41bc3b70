import type { Message } from "../../domain/Chat.ts"
import { withoutSwitches } from "./Faults.ts"

export const textsOf = (message: Message): ReadonlyArray<string> => {
  if (typeof message.content === "string") return [message.content]
  return (message.content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
}

/** Characters of a message that an answer depends on. */
const maxRead = 8_000

/** The beginning of a message's text. */
export const startOf = (message: Message): string => {
  let start = ""
  for (const text of textsOf(message)) if (start.length < maxRead) start += `${start === "" ? "" : " "}${text}`
  return start.slice(0, maxRead)
}

/** The same as its writer meant it, without switches. */
export const plainText = (message: Message): string => withoutSwitches(startOf(message))
