import type { Message } from "../../domain/Chat.ts"
import { withoutSwitches } from "./Weather.ts"

export const textsOf = (message: Message): ReadonlyArray<string> => {
  if (typeof message.content === "string") return [message.content]
  return (message.content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : []))
}

/** A message's text as its writer meant it, without switches. */
export const plainText = (message: Message): string => withoutSwitches(textsOf(message).join(" "))
