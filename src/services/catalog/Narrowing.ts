import { type Feature, Resolution } from "../../domain/Model.ts"
import { list } from "./Surface.ts"

/** Keys of a route, as it should have them. */
type Narrowing = readonly [key: string, value: string]

const capabilities: ReadonlySet<Feature> = new Set(["tools", "vision", "response_format", "web_search"])

const isResolution = (feature: Feature) => Resolution.literals.some((resolution) => resolution === feature)

const narrowingsOf = (promised: ReadonlyArray<Feature>, lacking: ReadonlySet<Feature>): ReadonlyArray<Narrowing> => {
  const lacks = (isOf: (feature: Feature) => boolean) => [...lacking].some(isOf)
  const kept = promised.filter((feature) => capabilities.has(feature) && !lacking.has(feature))
  const narrowings: ReadonlyArray<readonly [isNeeded: boolean, ...narrowing: Narrowing]> = [
    [lacks((feature) => capabilities.has(feature)), "capabilities", `[${list(kept)}]`],
    [lacking.has("reasoning"), "reasoning", "none"],
    [lacking.has("edit"), "edit", "false"],
    [lacks(isResolution), "resolutions", "[the one that it makes]"],
    [lacking.has("size") || lacking.has("aspect_ratio"), "aspect_ratios", "[the one that it makes]"]
  ]
  return narrowings.flatMap(([isNeeded, ...narrowing]) => (isNeeded ? [narrowing] : []))
}

/** What makes a route promise no more than its adapter can do. */
export const fixOf = (route: object, promised: ReadonlyArray<Feature>, lacking: ReadonlyArray<Feature>): string => {
  const narrowings = narrowingsOf(promised, new Set(lacking))
  const written = narrowings.map(([key, value]) => `${key}: ${value}`).join(", ")
  const isThere = narrowings.some(([key]) => Object.hasOwn(route, key))
  return [
    ...(narrowings.length === 0 ? [] : [isThere ? `set ${written} on the route` : `add ${written} to the route`]),
    // A family's rule, which a route cannot narrow.
    ...(lacking.includes("sampling") ? ["give the model a family with sampling: false"] : [])
  ].join("; ")
}
