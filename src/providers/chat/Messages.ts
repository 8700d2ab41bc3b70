import { createHash } from "node:crypto"
import { Predicate } from "effect"
import type { TextPart } from "../../domain/Chat.ts"
import { nestsWithin } from "../../domain/Json.ts"
import type { Route, RouteBase } from "../../domain/Model.ts"
import { parseJson, parseJsonExact, withoutByteOrderMark } from "../client/JsonFields.ts"

const maxLevels = 128

export const textsOf = (content: string | ReadonlyArray<TextPart> | null): ReadonlyArray<string> =>
  typeof content === "string" ? [content] : (content ?? []).map(({ text }) => text)

/** Separators between joined parts. An answer may be split anywhere; other parts are complete texts. */
const separators = { assistant: "", system: "\n\n", tool: "\n" } as const

export const joinTexts = (content: string | ReadonlyArray<TextPart> | null, role: keyof typeof separators): string =>
  typeof content === "string" ? content : textsOf(content).filter(Boolean).join(separators[role])

const parseObject = (text: string, parse: (text: string) => unknown): Record<string, unknown> | undefined => {
  const parsed = parse(text)
  return Predicate.isRecord(parsed) && nestsWithin(maxLevels, parsed) ? parsed : undefined
}

const isEmptyArguments = (text: string): boolean => text.length < 100 && ["", "null"].includes(text.trim())

/**
 * Parses the arguments of an earlier call. If they are no object, for example after a truncated answer, they become the
 * text of the field `arguments`.
 */
export const parseArguments = (text: string): Record<string, unknown> =>
  isEmptyArguments(text) ? {} : (parseObject(text, parseJsonExact) ?? { arguments: text })

/** Returns the arguments as the JSON text of an object, unchanged if they are one. */
export const toObjectText = (callArguments: string): string => {
  const text = withoutByteOrderMark(callArguments)
  if (isEmptyArguments(text)) return "{}"
  return parseObject(text, parseJson) === undefined ? JSON.stringify({ arguments: text }) : text
}

/** Parameters that cause charges beyond the tokens at some vendors, or that select a more expensive model. */
export const billedParameters = [
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

/** Hosts that fetch images from the public internet, so image URLs can be sent to them. */
const imageFetchingHosts: ReadonlySet<string> = new Set([
  "api.anthropic.com",
  "api.openai.com",
  "api.x.ai",
  "openrouter.ai"
])

/** Whether images must be sent inline, because the provider might fetch a URL from inside a private network. */
export const inlinesImages = ({ options, provider: { baseUrl = "" } }: Route): boolean => {
  if (typeof options.inline_images === "boolean") return options.inline_images
  return !URL.canParse(baseUrl) || !imageFetchingHosts.has(new URL(baseUrl).hostname)
}

/** Google's placeholder for a missing signature. */
export const signaturePlaceholder = "skip_thought_signature_validator"

const digestLength = 12
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Returns a digest that binds a signature to its provider and model, and detects damage. */
const digest = ({ model, provider }: RouteBase, signature: string): string =>
  createHash("sha256")
    .update(JSON.stringify([provider.baseUrl, model, signature]))
    .digest("base64url")
    .slice(0, digestLength)

export const tagSignature = (route: RouteBase, signature: unknown): string | undefined =>
  typeof signature === "string" && base64.test(signature) ? digest(route, signature) + signature : undefined

/** Returns undefined if the signature belongs to another route or is damaged. */
export const verifySignature = (route: RouteBase, taggedSignature: string | undefined): string | undefined => {
  const signature = taggedSignature?.slice(digestLength)
  return signature !== undefined && tagSignature(route, signature) === taggedSignature ? signature : undefined
}
