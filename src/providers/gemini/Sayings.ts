import type { Route } from "../../domain/Model.ts"
import { hostError, parse } from "../Classification.ts"
import type { Options } from "./Options.ts"
import type { Saying } from "./Request.ts"

const remembered = 1_000

/** How requests are said to each route, and what its host would not hear. */
export interface Sayings {
  readonly of: (route: Route, options: Options) => Saying
  /** Another way to say what was refused; undefined where there is none. `refused` is the body of the refusal. */
  readonly adapt: (route: Route, sent: Saying, refused: string) => Saying | undefined
}

export const make = (): Sayings => {
  const unpenalized = new Set<string>()

  const forget = () => {
    const [oldest] = unpenalized
    if (unpenalized.size >= remembered && oldest !== undefined) unpenalized.delete(oldest)
  }

  return {
    of: ({ id }, { thinking = "level" }) => ({
      signatures: thinking === "level" ? "required" : "optional",
      penalties: !unpenalized.has(id)
    }),
    adapt: ({ id }, sent, refused) => {
      const message = hostError(parse(refused))?.message ?? ""
      if (sent.penalties && /penalty is not enabled/i.test(message)) {
        forget()
        unpenalized.add(id)
        return { ...sent, penalties: false }
      }
      // Of this conversation, not of the route: nothing to remember.
      return sent.signatures !== "sentinel" && /thought.?signature/i.test(message)
        ? { ...sent, signatures: "sentinel" }
        : undefined
    }
  }
}
