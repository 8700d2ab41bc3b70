import type { Route } from "../../domain/Model.ts"
import { hostError, parse } from "../client/Classification.ts"
import type { Options } from "./Options.ts"
import type { Saying } from "./Request.ts"

const remembered = 1_000

/** How requests are said to each route, and what its host would not hear. */
export interface Sayings {
  readonly of: (route: Route, options: Options) => Saying
  /** Another way to say what was refused; undefined where there is none. `refused` is the body of the refusal. */
  readonly adapt: (route: Route, sent: Saying, refused: string) => Saying | undefined
}

type Habits = Pick<Saying, "penalties" | "sampling">

/** What clients send out of habit, and what a host says that does not know it; a tool's schema may have the same words. */
const habits: ReadonlyArray<readonly [keyof Habits, RegExp]> = [
  ["penalties", /penalty is not enabled/i],
  ["sampling", /^(?!.*(propert|declaration|schema)).*\b(temperature|top_?p|sampling)\b.*\b(not|un|deprecated|removed)/i]
]

export const make = (): Sayings => {
  const learnt = new Map<string, Habits>()

  const habitsOf = ({ id }: Route): Habits => learnt.get(id) ?? { penalties: true, sampling: true }
  const learn = ({ id }: Route, known: Habits): Habits => {
    const [oldest] = learnt.keys()
    if (learnt.size >= remembered && oldest !== undefined) learnt.delete(oldest)
    learnt.set(id, known)
    return known
  }

  return {
    of: (route, { thinking = "level" }) => ({
      ...habitsOf(route),
      signatures: thinking === "level" ? "required" : "optional"
    }),
    adapt: (route, sent, refused) => {
      const message = hostError(parse(refused))?.message ?? ""
      for (const [habit, unknown] of habits) {
        if (sent[habit] && unknown.test(message)) {
          return { ...sent, ...learn(route, { ...habitsOf(route), [habit]: false }) }
        }
      }
      // Of this conversation, not of the route: nothing to remember.
      return sent.signatures !== "sentinel" && /thought.?signature/i.test(message)
        ? { ...sent, signatures: "sentinel" }
        : undefined
    }
  }
}
