import { Data, Effect } from "effect"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { RouteControl, RouteControls } from "../control/RouteControls.ts"
import { RouteHealth } from "../routing/RouteHealth.ts"
import { auditResource, operation } from "./Operation.ts"

const maxSuggested = 10

const suggest = (asked: string, known: ReadonlyArray<string>): string => {
  const parts = asked.toLowerCase().split(/[@#]/)
  const near = known.filter((id) => parts.some((part) => part !== "" && id.toLowerCase().includes(part)))
  const shown = (near.length > 0 ? near : known).slice(0, maxSuggested)
  return shown.length === 0 ? "" : ` Known: ${shown.join(", ")}${near.length > maxSuggested ? ", …" : ""}.`
}

export class RouteNotFound extends Data.TaggedError("RouteNotFound")<{
  readonly route: string
  readonly known: ReadonlyArray<string>
}> {
  override get message() {
    return `There is no route ${this.route}.${suggest(this.route, this.known)}`
  }
}

/** Those that can be called, then those that cannot. */
export const catalogRoutes = ({
  models,
  offers
}: Pick<CatalogSnapshot, "models" | "offers">): ReadonlyArray<string> => [
  ...new Set([...models, ...offers.map(({ model }) => model)].flatMap(({ routes }) => routes.map(({ id }) => id)))
]

/** The catalog is read last: a route of a running gateway is found beside a file that is broken. */
const requireRoute = Effect.fnUntraced(function* <E, R>(
  route: string,
  inCatalog: Effect.Effect<ReadonlyArray<string>, E, R>
) {
  const disabled = (yield* (yield* RouteControls).disabled).map(({ id }) => id)
  const used = (yield* (yield* RouteHealth).list).map((one) => one.route)
  if (disabled.includes(route) || used.includes(route)) return
  const known = [...new Set([...(yield* inCatalog), ...used, ...disabled])]
  if (!known.includes(route)) return yield* new RouteNotFound({ route, known })
})

/** Reads the catalog's routes; those in use or disabled are known without it. */
type InCatalog<E, R> = Effect.Effect<ReadonlyArray<string>, E, R>

const routes = <E, R>(inCatalog: InCatalog<E, R>) =>
  auditResource({
    name: "routes",
    record: RouteControl,
    find: (_, route) =>
      Effect.zipRight(
        requireRoute(route, inCatalog),
        Effect.flatMap(RouteControls, ({ find }) => find(route))
      )
  })

export const disable = operation(
  "Send no new requests to a route until it is enabled; what it is doing goes on",
  <E, R>(route: string, note: string | undefined, inCatalog: InCatalog<E, R>) =>
    routes(inCatalog).change("disable", route, { note }, () =>
      Effect.flatMap(RouteControls, ({ disable }) => disable(route, note))
    )
)

export const enable = operation(
  "Send requests to a disabled route again",
  <E, R>(route: string, inCatalog: InCatalog<E, R>) =>
    routes(inCatalog).change("enable", route, {}, () => Effect.flatMap(RouteControls, ({ enable }) => enable(route)))
)

export const reset = operation(
  "Close the circuit of a route on every instance, and forget its failures",
  <E, R>(route: string, inCatalog: InCatalog<E, R>) =>
    routes(inCatalog).change("reset", route, {}, () => Effect.flatMap(RouteControls, ({ reset }) => reset(route)))
)
