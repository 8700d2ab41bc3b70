import type { Route } from "../../domain/Model.ts"
import { hostError, parse } from "../client/Classification.ts"
import type { Dialect } from "./Request.ts"

const remembered = 1_000

/** What accounts refused of the things that we ask for on our own account, by route. */
export interface Dialects {
  readonly of: (route: Route) => Dialect
  /**
   * What is left to ask for, remembered from now on; undefined where the refusal is about something else.
   * @param sent the dialect of the request that was refused
   * @param refused the body of the refusal
   */
  readonly adapt: (route: Route, sent: Dialect, refused: string) => Dialect | undefined
}

const initial: Dialect = { summary: true, stream: true }

/** An organization that is not verified gets no summaries, and of some models no streams. */
const without = (sent: Dialect, body: string): Dialect | undefined => {
  const error = hostError(parse(body))
  const unsupported = error?.words.some((word) => word === "unsupported_value" || word === "unsupported_parameter")
  if (unsupported !== true) return undefined
  if (error?.param === "reasoning.summary" && sent.summary) return { ...sent, summary: false }
  return error?.param === "stream" && sent.stream ? { ...sent, stream: false } : undefined
}

export const make = (): Dialects => {
  const learnt = new Map<string, Dialect>()
  return {
    of: (route) => learnt.get(route.id) ?? initial,
    adapt: (route, sent, refused) => {
      const dialect = without(sent, refused)
      if (dialect === undefined) return undefined
      const [oldest] = learnt.keys()
      if (learnt.size >= remembered && oldest !== undefined) learnt.delete(oldest)
      learnt.set(route.id, dialect)
      return dialect
    }
  }
}
