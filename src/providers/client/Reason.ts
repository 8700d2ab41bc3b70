import { Redacted } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import type { ProviderFailure } from "../../services/routing/Provider.ts"
import { amendFailure, readHostError } from "./Classification.ts"
import { asFields, asText, parseJson } from "./Json.ts"

const longest = 300
/** Some expressions take quadratic time. */
const longestSource = 2_000

type Rule = readonly [pattern: RegExp, replacement: string]

const topLevels =
  "com|net|org|io|ai|dev|app|cloud|co|us|uk|eu|de|ch|fr|cn|jp|info|biz|tech|xyz|goog|google|internal|intern|local|localdomain|lan|corp|svc|cluster|test|example|invalid|arpa"
const owner = "organi[sz]ation|project|workspace|account|tenant|team|subscription"

/** Ids of calls stay, which are the client's own, and so do paths of fields and names of tools and betas. */
const rules: ReadonlyArray<Rule> = [
  [/(?<!\w)[a-z][a-z0-9+.-]{0,30}:\/\/\S+/giu, "[url]"],
  [/(?<!\w)data:[^\s,]*,\S+/giu, "[data]"],
  [/[^\s@<>"'`(),;:]+@[^\s@<>"'`(),;:]+/gu, "[email]"],
  [/(?<![\w-])(?:bearer|basic)\s+(?=\S*\d)[\w\-.~+/*]{6,}=*/giu, "[key]"],
  [
    /(?<![\w-])(?:sk|pk|rk|ak|gsk|xai|ggw|r8|hf|gh[a-z]|glpat|fal|fw|nvapi|pplx|csk|tgp|key)[-_](?=[\w*.-]*[\d*])[\w*.-]{4,}/giu,
    "[key]"
  ],
  [/(?<![\w-])(?:AIza|AKIA|ASIA|ya29|eyJ)[\w\-.*]{6,}/gu, "[key]"],
  [
    /\b((?:projects|accounts|organizations|subscriptions|resourceGroups|workspaces|tenants)\/)[^\s/"'`,;)]+/giu,
    "$1[name]"
  ],
  [/(?<!\w)arn:\S+/giu, "[id]"],
  [
    new RegExp(
      `(?<![\\w.-])(?:[a-z0-9][a-z0-9_-]{0,62}\\.)+(?:${topLevels})(?![\\w-]|\\.\\w)(?::\\d+)?(?:/\\S*)?`,
      "giu"
    ),
    "[host]"
  ],
  [/(?<![\w.-])(?:localhost|[a-z][a-z0-9]*(?:[-.][a-z0-9]+)+(?=:\d))(?::\d{1,5})?(?!\w)(?:\/\S*)?/giu, "[host]"],
  [/(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?::\d+|\/\d+)?(?![\w-]|\.\d)/gu, "[host]"],
  [
    /\[?(?<![\w:])(?:(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){0,6}:(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4})(?![\w:])\]?/giu,
    "[host]"
  ],
  [/\b((?:request|trace|correlation|ray)[ _-]?id["'`]?\s*[:=#]?\s*)["'`]?(?=[\w.-]*\d)[\w.-]+/giu, "$1[id]"],
  [
    new RegExp(
      `\\b((?:${owner})(?:[ _-](?:id|name|number))?(?:\\s*[:=]\\s*|\\s+))(?:"[^"]+"|'[^']+'|\`[^\`]+\`|(?<=[:=]\\s*)[^\\s,;)]+|(?=[^\\s,;)]*[\\d_-])[^\\s,;)]+)`,
      "giu"
    ),
    "$1[name]"
  ],
  [
    /\b((?:[Oo]rganization|[Pp]roject|[Ww]orkspace|[Aa]ccount|[Tt]enant|[Tt]eam) )(?!I[Dd]\b|Name\b)[A-Z][\w&.-]*(?: [A-Z][\w&.-]*)*/gu,
    "$1[name]"
  ],
  [/(?<![\w-])(?:req|resp|msg|chatcmpl|cmpl|gen|org|proj|wrkspc|acct)[-_](?=[\w-]*\d|[\w-]{8})[\w-]+/giu, "[id]"],
  [
    /(?<![\w-])(?:rs|ws|file|user|session|container|cntr|vs|asst|thread|run|batch|ft|evt|cus)[-_](?=[\w-]*\d)[\w-]{6,}/giu,
    "[id]"
  ],
  [/(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])/giu, "[id]"],
  [/(?<![\w-])(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{24,}(?![\w-])/giu, "[id]"]
]

const escape = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

const cut = (text: string): string => {
  if (text.length <= longest) return text
  const end = /[\uD800-\uDBFF]/.test(text.charAt(longest - 2)) ? longest - 2 : longest - 1
  return `${text.slice(0, end)}…`
}

/** A host's message in at most 300 characters, without ids, keys, addresses and names of accounts; `model` is the client's name for the route's. */
export const cleanReason = (message: string, { model: name, provider }: RouteBase, model: string): string => {
  const { baseUrl = "", credential } = provider
  const secret = credential === undefined ? "" : Redacted.value(credential)
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname : ""
  const own: ReadonlyArray<Rule> = [
    [/[\p{Cf}\p{Cs}\p{Co}]/gu, ""],
    [/[\p{Cc}\p{Z}]+/gu, " "],
    ...(secret === "" ? [] : [[new RegExp(escape(secret), "gu"), "[key]"] as const]),
    ...(host === "" ? [] : [[new RegExp(`(?<![\\w.-])${escape(host)}(?![\\w-])(?::\\d+)?`, "giu"), "[host]"] as const]),
    [
      new RegExp(`(?<![\\w.-])${escape(name)}(?:-\\d{4}-\\d\\d-\\d\\d|-\\d{8})?(?![\\w-])`, "giu"),
      model.replaceAll("$", "$$$$")
    ]
  ]
  const source = message.slice(0, longestSource)
  return cut([...own, ...rules].reduce((text, [pattern, by]) => text.replaceAll(pattern, by), source).trim())
}

const contextExceeded =
  /prompt is too long|context[_ ](?:length|window|limit)|maximum context|exceeds? the (?:model's )?(?:context|maximum[^.]{0,40}tokens)|input token count|too many (?:input )?tokens/i

/** OpenRouter wraps a vendor's own error. */
const messageIn = (body: unknown): string => {
  const { raw } = asFields(asFields(asFields(body).error).metadata)
  return readHostError(parseJson(asText(raw)))?.message || (readHostError(body)?.message ?? "")
}

/** A refusal of the request tells why, for clients that recover by it. */
export const withReason = (
  failure: ProviderFailure,
  text: string,
  route: RouteBase,
  model: string
): ProviderFailure => {
  if (failure.class !== "request") return failure
  const body = parseJson(text)
  const message = messageIn(body)
  const isExceeded =
    readHostError(body)?.words.includes("context_length_exceeded") === true || contextExceeded.test(message)
  return amendFailure(failure, {
    reason: cleanReason(message, route, model) || undefined,
    reasonCode: isExceeded ? "context_length_exceeded" : undefined
  })
}
