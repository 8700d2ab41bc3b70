import { createHash } from "node:crypto"
import { Predicate } from "effect"
import type { TextPart } from "../../domain/Chat.ts"
import { nestsWithin } from "../../domain/Json.ts"
import type { Route, RouteBase } from "../../domain/Model.ts"
import { parseJson, parseJsonExact, withoutMark } from "../client/Json.ts"

const maxLevels = 128

export const textsOf = (content: string | ReadonlyArray<TextPart> | null): ReadonlyArray<string> =>
  typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text)

/** The separator of a message's parts in one text: an answer may have been cut anywhere, other parts are complete. */
const separators = { assistant: "", system: "\n\n", tool: "\n" } as const

/** The content of such a message as one text. */
export const joinTexts = (content: string | ReadonlyArray<TextPart> | null, role: keyof typeof separators): string =>
  typeof content === "string" ? content : textsOf(content).filter(Boolean).join(separators[role])

const parseObject = (text: string, parse: (text: string) => unknown): Record<string, unknown> | undefined => {
  const parsed = parse(text)
  return Predicate.isRecord(parsed) && nestsWithin(maxLevels, parsed) ? parsed : undefined
}

const isNothing = (text: string): boolean => text.length < 100 && ["", "null"].includes(text.trim())

/** The arguments of an earlier call: a cut answer's, or another model's, may be no object, and are kept as a text. */
export const parseArguments = (text: string): Record<string, unknown> =>
  isNothing(text) ? {} : (parseObject(text, parseJsonExact) ?? { arguments: text })

/** The same as a JSON text: the given one if it is an object's. */
export const objectText = (given: string): string => {
  const text = withoutMark(given)
  if (isNothing(text)) return "{}"
  return parseObject(text, parseJson) === undefined ? JSON.stringify({ arguments: text }) : text
}

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

/** Google's placeholder for a missing signature. */
export const sentinel = "skip_thought_signature_validator"

const digestLength = 12
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Valid for one host and model, and only undamaged. */
const digest = ({ model, provider }: RouteBase, signature: string): string =>
  createHash("sha256")
    .update(JSON.stringify([provider.baseUrl, model, signature]))
    .digest("base64url")
    .slice(0, digestLength)

export const seal = (route: RouteBase, signature: unknown): string | undefined =>
  typeof signature === "string" && base64.test(signature) ? digest(route, signature) + signature : undefined

/** Undefined where it is another route's, or damaged. */
export const unseal = (route: RouteBase, sealed: string | undefined): string | undefined => {
  const signature = sealed?.slice(digestLength)
  return signature !== undefined && seal(route, signature) === sealed ? signature : undefined
}
