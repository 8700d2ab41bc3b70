import { Array as Arr, Effect, Schema } from "effect"
import { discountModel } from "../../domain/Pricing.ts"
import { joinWords } from "../../domain/Wording.ts"
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

/** A price that is below its cost. */
export interface Loss {
  readonly route: string
  readonly unit: string
  /** What the price is below, such as `what the provider charges`. */
  readonly limit: string
  /** When the price applies, such as `at a discount of 20 %, `. Empty for the listed price of today. */
  readonly condition: string
}

const textOf = ({ condition, limit, route }: Loss, price: string) => `${condition}${route}: ${price} below ${limit}`

export const lossText = (loss: Loss): string => textOf(loss, `the price of ${loss.unit} is`)

/** Returns one sentence for all losses of a route that differ only in their unit. */
export const summarizeLosses = (losses: ReadonlyArray<Loss>): ReadonlyArray<string> =>
  Object.values(Arr.groupBy(losses, (loss) => textOf(loss, ""))).map((group) => {
    const units = joinWords(
      group.map(({ unit }) => unit),
      "and"
    )
    return group.length === 1 ? lossText(group[0]) : textOf(group[0], `the prices of ${units} are`)
  })

/** Returns every price below its cost. */
export const lossesOf = (models: ReadonlyArray<ModelRecord>): ReadonlyArray<Loss> =>
  models.flatMap(({ routes }) =>
    routes.flatMap(({ id, margins }) =>
      margins.filter(isLoss).map(({ unit }) => ({ route: id, unit, limit: "what the provider charges", condition: "" }))
    )
  )

const addedLosses = (losses: ReadonlyArray<Loss>, known: ReadonlyArray<Loss>, condition: string) => {
  const knownTexts = new Set(known.map(lossText))
  return losses.filter((loss) => !knownTexts.has(lossText(loss))).map((loss): Loss => ({ ...loss, condition }))
}

/** Like `lossesOf`, for prices with a future date. Omits losses that today's prices already have. */
export const futureLossesOf = (offers: ReadonlyArray<SaleState>): ReadonlyArray<Loss> =>
  offers.flatMap((offer): ReadonlyArray<Loss> => {
    const { next } = offer.model
    if (next === undefined) return []
    const future = { ...offer, model: next.model }
    const condition = `from ${new Date(next.at).toISOString()} on, `
    return [
      ...addedLosses(lossesOf([modelRecord(future)]), lossesOf([modelRecord(offer)]), condition),
      ...futureLossesOf([future])
    ]
  })

/** Like `lossesOf`, for discounts in percent. Returns only losses that the listed prices do not have. */
export const discountLossesOf = (
  saleStates: ReadonlyArray<SaleState>,
  discounts: ReadonlyArray<number>
): ReadonlyArray<Loss> => {
  const listedLosses = lossesOf(saleStates.map(modelRecord))
  return discounts.flatMap((percent) => {
    const discounted = saleStates.map((state) => modelRecord({ ...state, model: discountModel(state.model, percent) }))
    return addedLosses(lossesOf(discounted), listedLosses, `at a discount of ${percent} %, `)
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
