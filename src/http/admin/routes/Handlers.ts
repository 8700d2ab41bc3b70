import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { marginRecord } from "../../../services/admin/CatalogRecord.ts"
import * as Operations from "../../../services/admin/RouteOperations.ts"
import { type RouteRecord, routeRecords } from "../../../services/admin/RouteRecord.ts"
import { Catalog, type CatalogSnapshot, perSnapshot } from "../../../services/catalog/Catalog.ts"
import { isLoss, reportModel } from "../../../services/catalog/CatalogReport.ts"
import { offerAt } from "../../../services/catalog/Offer.ts"
import { RouteControls } from "../../../services/control/RouteControls.ts"
import { RouteHealth } from "../../../services/routing/RouteHealth.ts"
import { AdminApi } from "../AdminApi.ts"
import { invalid, recordOf } from "../Fields.ts"
import { wholePage } from "../Page.ts"
import type { ServedRoute } from "./Schema.ts"

type Facts = Omit<typeof ServedRoute.Type, keyof RouteRecord>

const unknownHere: Facts = { surface: null, preference: null, weight: null, off_reason: null, margins: [], loss: false }

/** Those of the sandbox have neither price nor cost of their own. */
const factsOf = ({ offers }: CatalogSnapshot, now: number) =>
  new Map(
    offers.flatMap((offer) => {
      const { id: model, routes, surface } = reportModel(offerAt(offer, now))
      const callable = (offer.callable?.routes ?? []).map(
        ({ id, preference, provider: { name: provider }, weight }) => {
          const facts: Facts = { ...unknownHere, surface, preference, weight }
          return [id, { known: { id, model, provider }, facts }] as const
        }
      )
      const ofFile = routes.map(({ blocked = null, id, margins, preference, provider, weight }) => {
        const priced = { margins: margins.map(marginRecord), loss: margins.some(isLoss) }
        const facts: Facts = { surface, preference, weight, off_reason: blocked, ...priced }
        return [id, { known: { id, model, provider }, facts }] as const
      })
      return [...callable, ...ofFile]
    })
  )

export const RoutesHandlers = HttpApiBuilder.group(
  AdminApi,
  "routes",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const health = yield* RouteHealth
    const controls = yield* RouteControls
    const facts = perSnapshot(catalog, factsOf)
    const inCatalog = Effect.sync(() => Operations.catalogRoutes(catalog.current))
    const unknown = { RouteNotFound: invalid("route") }

    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          const { sandbox } = catalog.current
          const routes = yield* facts
          const known = [...routes.values()].map((route) => route.known)
          const records = routeRecords({ known, health: yield* health.list, disabled: yield* controls.disabled })
          const served = records.map((record) => ({ ...record, ...(routes.get(record.id)?.facts ?? unknownHere) }))
          return { sandbox, ...wholePage(served) }
        })
      )
      .handle("disable", ({ payload: { note, route } }) =>
        recordOf(Operations.disable.run(route, note, inCatalog)).pipe(Effect.catchTags(unknown))
      )
      .handle("enable", ({ payload: { route } }) =>
        recordOf(Operations.enable.run(route, inCatalog)).pipe(Effect.catchTags(unknown))
      )
      .handle("reset", ({ payload: { route } }) =>
        recordOf(Operations.reset.run(route, inCatalog)).pipe(Effect.catchTags(unknown))
      )
  })
)
