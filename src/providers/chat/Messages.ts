import { createHash } from "node:crypto"
import { Predicate } from "effect"
import type { TextPart } from "../../domain/Chat.ts"
import { nestsWithin } from "../../domain/Json.ts"
import type { Route } from "../../domain/Model.ts"
import { parseJson } from "../client/Json.ts"

const mostLevels = 128

export const textsOf = (content: string | ReadonlyArray<TextPart> | null): ReadonlyArray<string> =>
  typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text)

/** The arguments of a call as an object; what another model wrote may be none, and is then shown as it is. */
export const parseArguments = (text: string): Record<string, unknown> => {
  const parsed = text.trim() === "" ? {} : parseJson(text)
  return Predicate.isRecord(parsed) && nestsWithin(mostLevels, parsed) ? parsed : { arguments: text }
}

/** An id of at most so many characters, the same for a call and its result. */
export const fitCallId = (id: string, longest: number): string =>
  id.length <= longest ? id : `call_${createHash("sha256").update(id).digest("base64url")}`.slice(0, longest)

/** Vendors that fetch images by themselves, from outside of every network that a gateway may stand in. */
const fetchingHosts: ReadonlySet<string> = new Set(["api.anthropic.com", "api.openai.com", "api.x.ai", "openrouter.ai"])

/** Whether a route gets images as bytes: a host that fetches what a customer names may stand beside anything. */
export const inlinesImages = ({ options, provider: { baseUrl = "" } }: Route): boolean => {
  if (typeof options.inline_images === "boolean") return options.inline_images
  return !URL.canParse(baseUrl) || !fetchingHosts.has(new URL(baseUrl).hostname)
}
