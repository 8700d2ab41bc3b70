import { useMemo } from "preact/hooks"
import { useRoute } from "../CurrentRoute.ts"
import { parseMoment } from "../format/Moment.ts"

/** The time span of the filter bar in Unix seconds, which stays the same until another is chosen. */
export const useRange = (fallback = ""): { readonly since: number | undefined; readonly until: number | undefined } => {
  const { since = fallback, until } = useRoute().query
  return useMemo(() => {
    const now = Date.now() / 1000
    return { since: parseMoment(since, now), until: parseMoment(until, now) }
  }, [since, until])
}
