import { Array as Arr } from "effect"
import type { Model, RouteBase } from "../../domain/Model.ts"
import type { FeedModel, PriceList } from "./FeedModel.ts"

/** Found in the feed or not; without a route where only the model's own id was looked up. */
export interface LookedUp {
  readonly model: Model
  readonly route: RouteBase | undefined
  readonly fed: FeedModel | undefined
}

export interface Retired {
  readonly model: string
  readonly route: string | undefined
  readonly entry: string | undefined
  /** `certain` and `announced` by a date of the feed, `likely` by what it says without one, `possible` by its silence. */
  readonly retired: "certain" | "announced" | "likely" | "possible"
  readonly on: string | undefined
  readonly why: string
}

export const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

const findStated = ({ fed, model, route }: LookedUp, today: string): ReadonlyArray<Retired> => {
  if (fed?.retirement === undefined) return []
  const { on } = fed.retirement
  const of = { model: model.id, route: route?.id, entry: fed.entry, on }
  if (on === undefined) return [{ ...of, retired: "likely", why: "the feed calls it deprecated" }]
  return on <= today
    ? [{ ...of, retired: "certain", why: "the feed's date has passed" }]
    : [{ ...of, retired: "announced", why: "the feed gives a date" }]
}

/** Fewer say nothing about what a list leaves out. */
const fewestSiblings = 3

const findUnlisted = (lookedUp: ReadonlyArray<LookedUp>, kind: PriceList["kind"]): ReadonlyArray<Retired> => {
  const groups = Arr.groupBy(lookedUp, ({ model, route }) => `${route?.provider.name} ${model.surface}`)
  return Object.values(groups).flatMap((siblings) => {
    const missing = siblings.flatMap(({ fed, model, route }) =>
      fed === undefined && route !== undefined ? [{ model: model.id, route }] : []
    )
    const found = siblings.length - missing.length
    if (found < fewestSiblings || found < 2 * missing.length) return []
    return missing.map(
      ({ model, route }): Retired => ({
        model,
        route: route.id,
        entry: undefined,
        on: undefined,
        // Only a vendor's own list is meant to be complete.
        retired: kind === "OpenRouter" ? "likely" : "possible",
        why: `the feed has ${found} others of ${route.provider.name}, but not this one`
      })
    )
  })
}

export const findRetired = (
  lookedUp: ReadonlyArray<LookedUp>,
  kind: PriceList["kind"],
  today: string
): ReadonlyArray<Retired> => [
  ...lookedUp.flatMap((one) => findStated(one, today)),
  ...findUnlisted(
    lookedUp.filter(({ route }) => route !== undefined),
    kind
  )
]
