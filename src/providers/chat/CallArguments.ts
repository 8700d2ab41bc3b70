import { Predicate } from "effect"
import { nestsWithin } from "../../domain/Json.ts"
import { parseJson } from "../client/Json.ts"

const mostLevels = 128

/** The arguments of a call as an object. What another model wrote may be none: that is shown as it is. */
export const parseArguments = (text: string): Record<string, unknown> => {
  const parsed = text.trim() === "" ? {} : parseJson(text)
  return Predicate.isRecord(parsed) && nestsWithin(mostLevels, parsed) ? parsed : { arguments: text }
}
