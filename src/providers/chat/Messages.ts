import { createHash } from "node:crypto"
import { Predicate } from "effect"
import type { TextPart } from "../../domain/Chat.ts"
import { nestsWithin } from "../../domain/Json.ts"
import type { Route } from "../../domain/Model.ts"
import { parseJsonExact } from "../client/Json.ts"

const maxLevels = 128

export const textsOf = (content: string | ReadonlyArray<TextPart> | null): ReadonlyArray<string> =>
  typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text)

/** Another model's arguments may be no object, and are then passed as they are. */
export const parseArguments = (text: string): Record<string, unknown> => {
  const parsed = text.trim() === "" ? {} : parseJsonExact(text)
  return Predicate.isRecord(parsed) && nestsWithin(maxLevels, parsed) ? parsed : { arguments: text }
}

/** The same for a call and its result. */
export const replaceCallId = (id: string): string => `call_${createHash("sha256").update(id).digest("base64url")}`

export const fitCallId = (id: string, longest: number): string =>
  id.length <= longest ? id : replaceCallId(id).slice(0, longest)

/** What hosts of several vendors charge for beside the tokens, or by which they choose a dearer model. */
export const chargedByHosts = [
  "best_of",
  "models",
  "n",
  "plugins",
  "preset",
  "provider",
  "route",
  "search_parameters",
  "web_search_options"
]

/** Vendors that fetch images themselves, from the public internet. */
const fetchingHosts: ReadonlySet<string> = new Set(["api.anthropic.com", "api.openai.com", "api.x.ai", "openrouter.ai"])

/** Any other host that fetches URLs may stand in a private network. */
export const inlinesImages = ({ options, provider: { baseUrl = "" } }: Route): boolean => {
  if (typeof options.inline_images === "boolean") return options.inline_images
  return !URL.canParse(baseUrl) || !fetchingHosts.has(new URL(baseUrl).hostname)
}
