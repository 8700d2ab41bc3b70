import { hash } from "node:crypto"
import { Effect, Random } from "effect"
import { type ImageRequest, makesShape } from "../../domain/Image.ts"
import type { Capability, ImageRoute, Route, RouteBase, VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { rendersWith } from "../../domain/VideoRules.ts"

export const filterCapable = (
  routes: ReadonlyArray<Route>,
  needs: () => ReadonlySet<Capability>
): ReadonlyArray<Route> => {
  if (routes.every((route) => route.capabilities === undefined)) return routes
  const needed = [...needs()]
  return routes.filter(({ capabilities }) => capabilities === undefined || needed.every((one) => capabilities.has(one)))
}

const fieldOf: Readonly<Record<Capability, string>> = {
  tools: "tools",
  vision: "messages",
  response_format: "response_format",
  web_search: "web_search",
  reasoning: "reasoning_effort"
}

/** The first need that no route supports together with those before it. */
export const findUnservedField = (routes: ReadonlyArray<Route>, needs: ReadonlySet<Capability>): string | undefined => {
  const asked = [...needs]
  const first = asked.find((_, at) => filterCapable(routes, () => new Set(asked.slice(0, at + 1))).length === 0)
  return first && fieldOf[first]
}

export const filterForImage = (routes: ReadonlyArray<ImageRoute>, { references, resolution, shape }: ImageRequest) =>
  routes.filter(
    (route) => makesShape(route, resolution, shape) && (references.length === 0 || route.editModel !== undefined)
  )

export const filterForVideo = (routes: ReadonlyArray<VideoRoute>, { reference, seconds }: VideoRequest) =>
  routes.filter((route) => route.seconds.includes(seconds) && rendersWith(route, reference !== undefined))

/**
 * Puts the route with this id first, within its preference only, or over all. Weight 0 keeps a route out of the usual
 * choice, so it is a preference of its own.
 */
export const putFirst = <R extends RouteBase>(
  routes: ReadonlyArray<R>,
  id: string,
  among: "equals" | "all"
): ReadonlyArray<R> => {
  const preferred = routes.find((route) => route.id === id)
  if (preferred === undefined) return routes
  const isEqual = ({ preference, weight }: R) =>
    preference === preferred.preference && (weight === 0) === (preferred.weight === 0)
  const at = among === "all" ? 0 : routes.findIndex(isEqual)
  const others = routes.filter((route) => route !== preferred)
  return others.toSpliced(at, 0, preferred)
}

interface RankedRoute<R> {
  readonly route: R
  readonly rank: number
}

/** `random` is in [0, 1). */
const rankRoute = <R extends RouteBase>(route: R, random: number): RankedRoute<R> => ({
  route,
  rank: route.weight > 0 ? -Math.log(1 - random) / route.weight : Infinity
})

const sortByRank = <R extends RouteBase>(drawn: ReadonlyArray<RankedRoute<R>>): ReadonlyArray<R> =>
  drawn
    .toSorted((a, b) => a.route.preference - b.route.preference || (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0))
    .map(({ route }) => route)

const hashToUnit = (text: string): number => hash("sha256", text, "buffer").readUInt32BE() / 2 ** 32

/**
 * By preference, then at random by weight; weight 0 comes last. A conversation draws the same at every instance, so that
 * it finds its cache wherever a turn arrives.
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
const rememberedMillis = 600_000
const maxInGeneration = 25_000

interface LastRoute {
  readonly route: string
  /** When the conversation came to the route. */
  readonly since: number
  readonly usedAt: number
}

/** Which route answered each conversation last, and so has its prompt cache. Times are on the monotonic clock. */
export class Affinity {
  // Two generations: a single Map is slow at dropping its oldest entries one by one.
  #recent = new Map<string, LastRoute>()
  #older: ReadonlyMap<string, LastRoute> = new Map()
  #beganAt = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.#recent.size + this.#older.size
  }

  find(conversation: string, now: number): LastRoute | undefined {
    const last = this.#recent.get(conversation) ?? this.#older.get(conversation)
    return last !== undefined && now - last.usedAt < rememberedMillis ? last : undefined
  }

  remember(conversation: string, route: string, now: number): void {
    const last = this.find(conversation, now)
    if (this.#recent.size >= maxInGeneration || now - this.#beganAt >= rememberedMillis) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#beganAt = now
    }
    this.#recent.set(conversation, { route, since: last?.route === route ? last.since : now, usedAt: now })
  }
}

/** Not for ever: the routes that come first may be cheaper than one to which a failure brought the conversation. */
export const overridesPreference = ({ since }: LastRoute, now: number): boolean => now - since < rememberedMillis
