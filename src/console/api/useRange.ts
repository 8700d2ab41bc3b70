import { useMemo } from "preact/hooks"
import { isCalendarWord } from "../../domain/Calendar.ts"
import { useRoute } from "../CurrentRoute.ts"
import { parseMoment } from "../format/Moment.ts"

/** The time span of the filter bar in Unix seconds; `24h` stays the same until another is chosen, `today` until midnight. */
export const useRange = (fallback = ""): { readonly since: number | undefined; readonly until: number | undefined } => {
  const { since = fallback, until = "" } = useRoute().query
  const now = Date.now() / 1000
  const chosenAt = useMemo(() => now, [since, until])
  const read = (text: string) => parseMoment(text, isCalendarWord(text) ? now : chosenAt)
  return { since: read(since), until: read(until) }
}
