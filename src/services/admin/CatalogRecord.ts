import { Effect, Schema } from "effect"
import { discountModel } from "../../domain/Pricing.ts"
import type { Margin } from "../catalog/EntryOperations.ts"
import { onModel } from "../catalog/ModelEntry.ts"
import type { SaleState } from "../catalog/SaleState.ts"
import { type InstanceRecord, Instances } from "../instance/RunningGateway.ts"
import { TextOrNull, Usd } from "../resources/ResourceRecord.ts"
import { Audit } from "./AuditLog.ts"

export const MarginRecord = Schema.Struct({
  unit: Schema.String.annotations({
    description: "The billing unit, such as `prompt per 1M`, `1K image` or `8 s clip`."
  }),
  price_usd: Usd,
  cost_usd: Schema.NullOr(Usd).annotations({ description: "Null if the catalog has no cost." }),
  margin_usd: Schema.NullOr(Usd),
  margin_pct: Schema.NullOr(Schema.Number)
}).annotations({ identifier: "Margin" })
export type MarginRecord = typeof MarginRecord.Type

export const ModelRecord = Schema.Struct({
  id: Schema.String,
  surface: Schema.Literal("chat", "image", "video"),
  callable: Schema.Boolean,
  sandboxed: Schema.Boolean,
  reason: TextOrNull.annotations({ description: "The reason if the model is not callable." }),
  routes: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      provider: Schema.String,
      preference: Schema.Number,
      weight: Schema.Number,
      blocked: TextOrNull.annotations({ description: "The reason if the route cannot be called." }),
      margins: Schema.Array(MarginRecord)
    })
  )
}).annotations({ identifier: "CatalogModel" })
export type ModelRecord = typeof ModelRecord.Type

const marginPercent = (price: bigint, cost: bigint) =>
  price === 0n ? null : Number(((price - cost) * 1000n) / price) / 10

const marginRecord = ({ cost, price, unit }: Margin): MarginRecord => ({
  unit,
  price_usd: price,
  cost_usd: cost ?? null,
  margin_usd: cost === undefined ? null : price - cost,
  margin_pct: cost === undefined ? null : marginPercent(price, cost)
})

/** The record also contains routes that cannot be called. */
export const modelRecord = ({ blockedRoutes, callable, isSandboxed, model, reason }: SaleState): ModelRecord => ({
  id: model.id,
  surface: model.surface,
  callable: callable !== undefined,
  sandboxed: isSandboxed,
  reason: reason ?? null,
  routes: onModel(model, (operations, surfaceModel, routes) =>
    routes.map((route) => ({
      id: route.id,
      provider: route.provider.name,
      preference: route.preference,
      weight: route.weight,
      blocked: blockedRoutes.get(route.id) ?? null,
      margins: operations.margins(surfaceModel, route).map(marginRecord)
    }))
  )
})

export const isLoss = ({ margin_usd }: MarginRecord): boolean => margin_usd !== null && margin_usd < 0n

/** Returns a line for every price below its cost. */
export const lossesOf = (models: ReadonlyArray<ModelRecord>): ReadonlyArray<string> =>
  models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins }) =>
      margins.filter(isLoss).map(({ unit }) => `${id}: the price of ${unit} is below what the provider charges`)
    )
  )

/** Like `lossesOf`, for prices with a future date. Omits losses that today's prices already have. */
export const futureLossesOf = (offers: ReadonlyArray<SaleState>): ReadonlyArray<string> =>
  offers.flatMap((offer): ReadonlyArray<string> => {
    const { next } = offer.model
    if (next === undefined) return []
    const future = { ...offer, model: next.model }
    const currentLosses = new Set(lossesOf([modelRecord(offer)]))
    const addedLosses = lossesOf([modelRecord(future)]).filter((loss) => !currentLosses.has(loss))
    return [
      ...addedLosses.map((loss) => `from ${new Date(next.at).toISOString()} on, ${loss}`),
      ...futureLossesOf([future])
    ]
  })

/** Like `lossesOf`, for discounts in percent. Returns only losses that the listed prices do not have. */
export const discountLossesOf = (
  saleStates: ReadonlyArray<SaleState>,
  discounts: ReadonlyArray<number>
): ReadonlyArray<string> => {
  const listedLosses = new Set(lossesOf(saleStates.map(modelRecord)))
  return discounts.flatMap((percent) => {
    const discounted = saleStates.map((state) => modelRecord({ ...state, model: discountModel(state.model, percent) }))
    const addedLosses = lossesOf(discounted).filter((loss) => !listedLosses.has(loss))
    return addedLosses.map((loss) => `at a discount of ${percent} %, ${loss}`)
  })
}

const maxWait = "10 seconds"

const Reload = Schema.Struct({ generation: Schema.Number })

export const ReloadRecord = Schema.Struct({
  id: Schema.String.annotations({ description: "The id of the instance." }),
  host: TextOrNull,
  pid: Schema.NullOr(Schema.Number),
  state: Schema.Literal("reloaded", "refused", "no answer"),
  fingerprint: TextOrNull.annotations({ description: "The fingerprint of the catalog that it serves." }),
  models: Schema.NullOr(Schema.Number),
  problem: TextOrNull.annotations({ description: "The reason if it still serves the previous catalog." })
}).annotations({ identifier: "Reload" })
export type ReloadRecord = typeof ReloadRecord.Type

const hasAnswered =
  (requested: number) =>
  ({ generation }: InstanceRecord) =>
    (generation ?? 0) >= requested

const stateOf = (instance: InstanceRecord, requested: number) => {
  if (!hasAnswered(requested)(instance)) return "no answer"
  return instance.problem === null ? "reloaded" : "refused"
}

const reloadRecord = (instance: InstanceRecord, requested: number): ReloadRecord => ({
  id: instance.id,
  host: instance.host,
  pid: instance.pid,
  state: stateOf(instance, requested),
  fingerprint: instance.fingerprint,
  models: instance.models,
  problem: hasAnswered(requested)(instance) ? instance.problem : null
})

/** Asks every instance to reload its catalog file. The record has the number of the request, `generation`. */
export const requestReload = Effect.gen(function* () {
  const { create } = yield* Audit
  const { requestReload: request } = yield* Instances
  return yield* create({
    action: "catalog.reload",
    input: {},
    record: Reload,
    run: request,
    recordOf: (generation) => ({ generation }),
    targetOf: () => "catalog"
  })
})

/** Waits up to 10 seconds for all instances to reload. Returns the state of each. */
export const awaitReload = Effect.fn("CatalogReload.await")(function* (generation: number) {
  const instances = yield* Instances
  const list = Effect.map(instances.list, (all) => all.filter(({ state }) => state === "running").toReversed())
  const all = yield* Effect.delay(list, "100 millis").pipe(
    Effect.repeat({ until: (all) => all.every(hasAnswered(generation)) }),
    Effect.timeout(maxWait),
    Effect.catchTag("TimeoutException", () => list)
  )
  return all.map((instance) => reloadRecord(instance, generation))
})
