import type { Route } from "../../domain/Model.ts"
import { hostError, parse } from "../client/Classification.ts"
import type { Dialect } from "./Request.ts"

const remembered = 1_000

/** What hosts refused of the fields that we add on our own account, by route. */
export interface Dialects {
  readonly of: (route: Route) => Dialect
  /**
   * Another way to say what was refused, remembered from now on; undefined where none is left.
   * @param first the dialect this call began with
   * @param sent the dialect of the request that was refused
   * @param refused the body of the refusal
   */
  readonly adapt: (route: Route, first: Dialect, sent: Dialect, refused: string) => Dialect | undefined
}

type OwnField = "stream_options" | "max_tokens"

const initial = (route: Route): Dialect => ({
  maxTokensField: route.options.max_tokens_field === "max_completion_tokens" ? "max_completion_tokens" : "max_tokens",
  streamOptions: true
})

const ownField = (body: string): OwnField | undefined => {
  const error = hostError(parse(body))
  if (error?.param === undefined) return undefined
  const unknown = error.words.includes("unsupported_parameter") || error.words.includes("extra_forbidden")
  if (error.param === "stream_options" || error.param.startsWith("stream_options.")) {
    return unknown || error.words.includes("unsupported_value") ? "stream_options" : undefined
  }
  return unknown && (error.param === "max_tokens" || error.param === "max_completion_tokens") ? "max_tokens" : undefined
}

const otherwise = (first: Dialect, sent: Dialect, field: OwnField): Dialect | undefined => {
  if (field === "stream_options") return sent.streamOptions ? { ...sent, streamOptions: false } : undefined
  if (sent.maxTokensField !== first.maxTokensField) return undefined
  return { ...sent, maxTokensField: sent.maxTokensField === "max_tokens" ? "max_completion_tokens" : "max_tokens" }
}

export const make = (): Dialects => {
  const learnt = new Map<string, Dialect>()
  return {
    of: (route) => learnt.get(route.id) ?? initial(route),
    adapt: (route, first, sent, refused) => {
      const field = ownField(refused)
      const dialect = field === undefined ? undefined : otherwise(first, sent, field)
      if (dialect === undefined) return undefined
      const [oldest] = learnt.keys()
      if (learnt.size >= remembered && oldest !== undefined) learnt.delete(oldest)
      learnt.set(route.id, dialect)
      return dialect
    }
  }
}
