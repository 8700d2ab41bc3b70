import { Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { classify, parse, type Verdict } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { loggable } from "../client/Upstream.ts"

/** How models say that they refused the content: there is no code for it, each has words of its own. */
const moderated =
  /\bnsfw\b|(?<!case[- ])\bsensitive\b|\bE005\b|content (was |has been )?flagged|moderation|safety (system|filter|polic|guideline)|(content|usage) polic|responsible ai|risk control/i

const string = (value: unknown): string => (typeof value === "string" ? value : "")

/** The failure of a prediction that ran. */
export const failed = (account: ProviderAccount, status: number, said: string): ProviderFailure =>
  new ProviderFailure({
    class: moderated.test(said) ? "moderation" : "retry",
    status,
    detail: loggable(account, `the prediction failed: ${said}`)
  })

interface Refusal {
  /** In Replicate's own words. */
  readonly text: string
  /** Fields of the input that it finds fault with. */
  readonly fields: ReadonlyArray<string>
}

const refusalIn = (answer: UpstreamAnswer): Refusal => {
  const body = parse(answer.body)
  const { detail, invalid_fields, title } = Predicate.isRecord(body) ? body : {}
  const text = [string(title), string(detail)].join(" ").trim()
  const listed = (Array.isArray(invalid_fields) ? invalid_fields : []).filter(Predicate.isRecord)
  const named = [...listed.map(({ field }) => string(field)), ...(text.match(/\binput\.[\w.]+/g) ?? [])]
  return { text, fields: named.flatMap((path) => path.split(".")) }
}

const imageField = /^([a-z]+_)*(image|images|image_input)(_\d+)?$/
/** Fields that are about pictures, and are none. */
const imageCount = /(max|number_of|num)_images$/

const resets = /resets in ~?(\d+(?:\.\d+)?)\s?s\b/i

const verdictOf = (answer: UpstreamAnswer, { fields, text }: Refusal, nowMillis: number): Verdict => {
  const verdict = classify(answer, nowMillis, "image")
  if (verdict.class === "limit") {
    const [, seconds] = resets.exec(text) ?? []
    const told = seconds === undefined ? undefined : Number(seconds)
    return { ...verdict, retryAfterSeconds: verdict.retryAfterSeconds ?? told }
  }
  if (verdict.class !== "request") return verdict
  if (moderated.test(text)) return { ...verdict, class: "moderation" }
  // What it says of a model it does not have, or that this account may not run.
  if (/version does not exist|not permitted/i.test(text)) return { ...verdict, class: "retry" }
  const image = fields.some((field) => imageField.test(field) && !imageCount.test(field))
  return image ? { ...verdict, param: "image" } : verdict
}

/** The failure that a refusal means, with a word of it for the operator. */
export const refusal = (account: ProviderAccount, answer: UpstreamAnswer, nowMillis: number): ProviderFailure => {
  const said = refusalIn(answer)
  return new ProviderFailure({
    ...verdictOf(answer, said, nowMillis),
    status: answer.status,
    detail: loggable(account, `${answer.status} ${said.text === "" ? answer.body : said.text}`)
  })
}
