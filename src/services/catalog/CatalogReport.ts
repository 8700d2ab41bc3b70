import type { Model, Surface } from "../../domain/Model.ts"
import type { Offer } from "./Offer.ts"
import type { Margin } from "./Surface.ts"
import { onModel } from "./Surfaces.ts"

interface ReportedRoute {
  readonly id: string
  readonly provider: string
  readonly preference: number
  readonly weight: number
  /** Why it cannot be called. */
  readonly blocked: string | undefined
  readonly margins: ReadonlyArray<Margin>
}

export interface ReportedModel {
  readonly id: string
  readonly surface: Surface
  readonly callable: boolean
  readonly sandboxed: boolean
  /** Why it is off. */
  readonly reason: string | undefined
  readonly routes: ReadonlyArray<ReportedRoute>
}

const reportRoutes = (all: Model, blocked: Offer["blocked"]): ReadonlyArray<ReportedRoute> =>
  onModel(all, (surface, model, routes) =>
    routes.map((route) => ({
      id: route.id,
      provider: route.provider.name,
      preference: route.preference,
      weight: route.weight,
      blocked: blocked.get(route.id),
      margins: surface.margins(model, route)
    }))
  )

/** With every route, callable or not. */
export const reportModel = ({ blocked, callable, model, reason, sandboxed }: Offer): ReportedModel => ({
  id: model.id,
  surface: model.surface,
  callable: callable !== undefined,
  sandboxed,
  reason,
  routes: reportRoutes(model, blocked)
})

export const isLoss = ({ cost, price }: Margin): boolean => cost !== undefined && price < cost

/** One line for every price below its cost. */
export const lossesOf = (models: ReadonlyArray<ReportedModel>): ReadonlyArray<string> =>
  models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins }) =>
      margins.filter(isLoss).map(({ unit }) => `${id}: the price of ${unit} is below what the provider charges`)
    )
  )

/** As `lossesOf`, of what the models become. */
export const laterLossesOf = (offers: ReadonlyArray<Offer>): ReadonlyArray<string> =>
  offers.flatMap((offer): ReadonlyArray<string> => {
    const { next } = offer.model
    if (next === undefined) return []
    const later = { ...offer, model: next.model }
    const known = new Set(lossesOf([reportModel(offer)]))
    const fresh = lossesOf([reportModel(later)]).filter((loss) => !known.has(loss))
    return [...fresh.map((loss) => `from ${new Date(next.at).toISOString()} on, ${loss}`), ...laterLossesOf([later])]
  })
