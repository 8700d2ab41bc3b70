import { Array as Arr } from "effect"
import type { RouteControl } from "../../control/RouteControls.ts"
import type { PublishedHealth } from "../../routing/RouteHealth.ts"
import { byCircuit, byError } from "../RouteRecord.ts"
import type { Circuit } from "./Record.ts"

/** Routes that are disabled, or whose circuit is not closed on some instance. */
export const circuitsOf = (
  health: ReadonlyArray<PublishedHealth>,
  disabled: ReadonlyArray<RouteControl>
): ReadonlyArray<Circuit> => {
  const published = Arr.groupBy(health, ({ route }) => route)
  const errorOf = (route: string) => {
    const found = published[route]
    const { lastError = null, lastErrorAt = null } = found === undefined ? {} : Arr.max(found, byError)
    return { last_error: lastError, last_error_at: lastErrorAt }
  }
  const off = disabled.map(
    ({ id: route, note }): Circuit => ({ route, state: "disabled", until: null, ...errorOf(route), note })
  )
  const isOff = new Set(disabled.map(({ id }) => id))
  const failing = Object.entries(published).flatMap(([route, found]): ReadonlyArray<Circuit> => {
    const { circuit, openUntil } = Arr.max(found, byCircuit)
    if (circuit === "closed" || isOff.has(route)) return []
    return [{ route, state: circuit, until: circuit === "open" ? openUntil : null, ...errorOf(route), note: null }]
  })
  return [...failing, ...off]
}
