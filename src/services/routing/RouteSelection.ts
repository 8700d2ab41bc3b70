import { hash } from "node:crypto"
import { Effect, Random } from "effect"
import { type ImageRequest, makesShape } from "../../domain/Image.ts"
import type { Capability, ImageRoute, Route, RouteBase, VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { canRender } from "../../domain/VideoRules.ts"

export const filterCapable = (
  routes: ReadonlyArray<Route>,
  needs: () => ReadonlySet<Capability>
): ReadonlyArray<Route> => {
  if (routes.every((route) => route.capabilities === undefined)) return routes
  const requiredCapabilities = [...needs()]
  return routes.filter(
    ({ capabilities }) => capabilities === undefined || requiredCapabilities.every((one) => capabilities.has(one))
  )
}

const fieldOf: Readonly<Record<Capability, string>> = {
  tools: "tools",
  vision: "messages",
  response_format: "response_format",
  web_search: "web_search",
  reasoning: "reasoning_effort"
}

/** Returns the field of the first capability that no route supports together with the ones before it. */
export const findUnservedField = (routes: ReadonlyArray<Route>, needs: ReadonlySet<Capability>): string | undefined => {
  const capabilities = [...needs]
  const first = capabilities.find(
    (_, at) => filterCapable(routes, () => new Set(capabilities.slice(0, at + 1))).length === 0
  )
  return first && fieldOf[first]
}

export const filterForImage = (routes: ReadonlyArray<ImageRoute>, { references, resolution, shape }: ImageRequest) =>
  routes.filter(
    (route) => makesShape(route, resolution, shape) && (references.length === 0 || route.editModel !== undefined)
  )

export const filterForVideo = (routes: ReadonlyArray<VideoRoute>, { reference, seconds }: VideoRequest) =>
  routes.filter((route) => route.seconds.includes(seconds) && canRender(route, reference !== undefined))

/**
 * Puts the route with this id first, among all routes or only among equal ones. Equal routes have the same preference,
 * and either all or none of them have weight 0.
 */
export const putFirst = <R extends RouteBase>(
  routes: ReadonlyArray<R>,
  id: string,
  among: "equals" | "all"
): ReadonlyArray<R> => {
  const preferredRoute = routes.find((route) => route.id === id)
  if (preferredRoute === undefined) return routes
  const isEqual = ({ preference, weight }: R) =>
    preference === preferredRoute.preference && (weight === 0) === (preferredRoute.weight === 0)
  const at = among === "all" ? 0 : routes.findIndex(isEqual)
  const otherRoutes = routes.filter((route) => route !== preferredRoute)
  return otherRoutes.toSpliced(at, 0, preferredRoute)
}

interface RankedRoute<R> {
  readonly route: R
  readonly rank: number
}

/** Returns the route with its rank: a lower one comes first. `random` is in [0, 1). */
const rankRoute = <R extends RouteBase>(route: R, random: number): RankedRoute<R> => ({
  route,
  rank: route.weight > 0 ? -Math.log(1 - random) / route.weight : Infinity
})

const sortByRank = <R extends RouteBase>(routes: ReadonlyArray<RankedRoute<R>>): ReadonlyArray<R> =>
  routes
    .toSorted((a, b) => a.route.preference - b.route.preference || (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0))
    .map(({ route }) => route)

const hashToUnit = (text: string): number => hash("sha256", text, "buffer").readUInt32BE() / 2 ** 32

/**
 * Orders routes by preference, then at random by weight. Weight 0 comes last. A conversation gets the same order on
 * every instance, and so reaches its prompt cache.
 */
export const orderRoutes = <R extends RouteBase>(
  routes: ReadonlyArray<R>,
  conversation?: string
): Effect.Effect<ReadonlyArray<R>> => {
  const preferences = new Set(routes.map(({ preference }) => preference))
  if (preferences.size === routes.length) {
    return Effect.succeed(routes.toSorted((a, b) => a.preference - b.preference))
  }
  if (conversation !== undefined) {
    return Effect.succeed(
      sortByRank(routes.map((route) => rankRoute(route, hashToUnit(`${conversation}\n${route.id}`))))
    )
  }
  return Effect.map(
    Effect.forEach(routes, (route) => Effect.map(Random.next, (random) => rankRoute(route, random))),
    sortByRank
  )
}

/** Providers keep a prompt's cache for five to ten minutes after its last use. */
const retentionMillis = 600_000
const maxGenerationSize = 25_000

interface LastRoute {
  readonly route: string
  /** When the conversation moved to the route. */
  readonly since: number
  readonly usedAt: number
}

/** The last route of each conversation, which has its prompt cache. Times are on the monotonic clock. */
export class Affinity {
  // Two generations, because a single Map drops its oldest entries slowly.
  #recent = new Map<string, LastRoute>()
  #older: ReadonlyMap<string, LastRoute> = new Map()
  #beganAt = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  find(conversation: string, now: number): LastRoute | undefined {
    const last = this.#recent.get(conversation) ?? this.#older.get(conversation)
    return last !== undefined && now - last.usedAt < retentionMillis ? last : undefined
  }

  remember(conversation: string, route: string, now: number): void {
    const last = this.find(conversation, now)
    if (this.#recent.size >= maxGenerationSize || now - this.#beganAt >= retentionMillis) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#beganAt = now
    }
    this.#recent.set(conversation, { route, since: last?.route === route ? last.since : now, usedAt: now })
  }
}

/**
 * Returns whether the last route of a conversation comes before routes that the catalog prefers. It does so only for a
 * limited time, because the preferred routes may be cheaper.
 */
export const overridesPreference = ({ since }: LastRoute, now: number): boolean => now - since < retentionMillis
