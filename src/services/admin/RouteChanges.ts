import { Data, Effect, Schema } from "effect"
import type { CatalogSnapshot } from "../catalog/Catalog.ts"
import { type RouteControl, RouteControls } from "../control/RouteControls.ts"
import { TextOrNull, TimeOrNull } from "../resources/Record.ts"
import { RouteHealth } from "../routing/RouteHealth.ts"
import { Audit } from "./Audit.ts"

export const RouteControlRecord = Schema.Struct({
  id: Schema.String,
  disabled: Schema.Boolean,
  disabled_at: TimeOrNull,
  note: TextOrNull
}).annotations({ identifier: "RouteControl" })
export type RouteControlRecord = typeof RouteControlRecord.Type

const controlRecord = ({ disabledAt, note, route }: RouteControl): RouteControlRecord => ({
  id: route,
  disabled: disabledAt !== null,
  disabled_at: disabledAt,
  note
})

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
  const disabled = (yield* (yield* RouteControls).disabled).map((one) => one.route)
  const used = (yield* (yield* RouteHealth).list).map((one) => one.route)
  if (disabled.includes(route) || used.includes(route)) return
  const known = [...new Set([...(yield* inCatalog), ...used, ...disabled])]
  if (!known.includes(route)) return yield* new RouteNotFound({ route, known })
})

const changeRoute = <E, R>(
  action: string,
  route: string,
  inCatalog: Effect.Effect<ReadonlyArray<string>, E, R>,
  input: { readonly note?: string | undefined },
  run: (controls: typeof RouteControls.Service) => Effect.Effect<RouteControl>
) =>
  Effect.gen(function* () {
    const { change } = yield* Audit
    const controls = yield* RouteControls
    const find = Effect.zipRight(requireRoute(route, inCatalog), controls.find(route))
    return yield* change({
      action: `routes.${action}`,
      input,
      target: route,
      record: RouteControlRecord,
      find: () => Effect.map(find, (found) => found && controlRecord(found)),
      run: () => run(controls),
      recordOf: controlRecord,
      targetOf: ({ id }) => id
    })
  })

/** Of the catalog's routes `inCatalog` tells; routes that are in use or disabled are known without it. */
export const disableRoute = <E, R>(
  route: string,
  note: string | undefined,
  inCatalog: Effect.Effect<ReadonlyArray<string>, E, R>
) => changeRoute("disable", route, inCatalog, { note }, ({ disable }) => disable(route, note))

export const enableRoute = <E, R>(route: string, inCatalog: Effect.Effect<ReadonlyArray<string>, E, R>) =>
  changeRoute("enable", route, inCatalog, {}, ({ enable }) => enable(route))

/** Closes its circuit on every instance. */
export const resetRoute = <E, R>(route: string, inCatalog: Effect.Effect<ReadonlyArray<string>, E, R>) =>
  changeRoute("reset", route, inCatalog, {}, ({ reset }) => reset(route))
