import { createHash } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Array as Arr, Context, Effect, Layer, Order, Record, Schema } from "effect"
import type { ChatPricing, Model } from "../../domain/Model.ts"
import { NanoUsdFromRow, zero } from "../../domain/Money.ts"
import { discountModel, ratesAt } from "../../domain/Pricing.ts"
import { baseKinds, partKinds } from "../../domain/TokenKinds.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import type { Path } from "./CatalogSource.ts"
import type { EntryContext, EntryOperations, Report } from "./EntryOperations.ts"

const { completion, prompt } = baseKinds
/** In the order of the stored text. The list's id is a hash of that text, so another order would change the ids. */
const storedKinds = { prompt, ...partKinds, completion }
/** Rates of later kinds are optional, because a stored list may be older than they are. */
const namedRates = {
  ...Record.mapEntries(storedKinds, ({ name }) => [name, Schema.optional(NanoUsdFromRow)]),
  prompt: NanoUsdFromRow,
  completion: NanoUsdFromRow
}

/** The rates of requests whose prompt has more than `above` tokens, in nano-USD per million tokens. */
const Tier = Schema.Struct({
  above: Schema.Number,
  ...namedRates
})

/**
 * Contains every rate, because the default of a missing one may change. The SQL of `services/ledger/Invariants.ts` reads it
 * too.
 */
const PriceList = Schema.Struct({
  tiers: Schema.NonEmptyArray(Tier),
  /** In nano-USD per thousand searches. */
  web_search: NanoUsdFromRow
})

const encode = Schema.encodeSync(Schema.parseJson(PriceList))
const Row = Schema.Struct({ rates: PriceList })
const rows = rowsOf(Row)

const tierOf = (pricing: ChatPricing, above: number): typeof Tier.Type => {
  const rates = ratesAt(pricing, above + 1)
  return { above, ...Record.mapEntries(storedKinds, ({ name }, kind) => [name, rates[kind]]) }
}

const textOf = (pricing: ChatPricing): string => {
  const { longContext, webSearch = zero } = pricing
  const base = tierOf({ ...pricing, longContext: undefined }, 0)
  const tiers = longContext === undefined ? ([base] as const) : ([base, tierOf(pricing, longContext.above)] as const)
  return encode({ tiers, web_search: webSearch })
}

const ids = new WeakMap<ChatPricing, string>()

/** Returns the id of the rates: a decimal PostgreSQL bigint, which is the same for equal rates on all instances. */
export const priceIdOf = (pricing: ChatPricing): string => {
  const cachedId = ids.get(pricing)
  if (cachedId !== undefined) return cachedId
  const id = createHash("sha256").update(textOf(pricing)).digest().readBigInt64BE().toString()
  ids.set(pricing, id)
  return id
}

const pricingOf = ({ tiers: [base, long], web_search }: typeof PriceList.Type): ChatPricing => {
  const ratesOf = (tier: typeof Tier.Type) => ({
    ...Record.map(partKinds, ({ name }) => tier[name]),
    prompt: tier.prompt,
    completion: tier.completion
  })
  return { ...ratesOf(base), webSearch: web_search, longContext: long && { above: long.above, ...ratesOf(long) } }
}

/** Returns the current prices and all later ones. */
const chatPricingsOf = (model: Model): ReadonlyArray<ChatPricing> => [
  ...(model.surface === "chat" ? [model.pricing] : []),
  ...(model.next === undefined ? [] : chatPricingsOf(model.next.model))
]

const DiscountRow = Schema.Struct({ percent: Schema.Number })

/** Returns the discounts in percent that organizations have, each once. */
export const readDiscounts = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<number>> =>
  Effect.map(
    rowsOf(DiscountRow)(sql`
      SELECT DISTINCT discount_percent AS percent FROM organizations
      WHERE discount_percent <> 0 AND deleted_at IS NULL ORDER BY 1`),
    (all) => all.map(({ percent }) => percent)
  )

/**
 * Returns the discounts in percent that organizations have or had in the last week, each once. A gateway may have charged
 * at a discount and been killed before it stored the rates. Runs after every change of a key, so it reads the audit log
 * from its newest row back to the first older one: the log has no index of times.
 */
export const readRecentDiscounts = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<number>> =>
  Effect.map(
    rowsOf(DiscountRow)(sql`
      SELECT DISTINCT percent FROM (
        SELECT discount_percent AS percent FROM organizations WHERE deleted_at IS NULL
        UNION ALL
        SELECT (before ->> 'discount_percent')::float8 FROM audit
        WHERE action IN ('organizations.update', 'organizations.delete') AND id > coalesce((
          SELECT id FROM audit WHERE at <= now() - interval '7 days' ORDER BY id DESC LIMIT 1
        ), 0)
      ) AS discounts WHERE percent <> 0 ORDER BY 1`),
    (all) => all.map(({ percent }) => percent)
  )

/** Stores the rates of all models, without a discount and with each of the discounts in percent. */
export const storePriceLists = (
  sql: SqlClient.SqlClient,
  models: ReadonlyArray<Model>,
  discounts: ReadonlyArray<number> = []
) => {
  const pricedModels = [
    ...models,
    ...discounts.flatMap((percent) => models.map((model) => discountModel(model, percent)))
  ]
  const lists = Arr.dedupeWith(
    pricedModels.flatMap(chatPricingsOf).map((pricing) => ({ id: priceIdOf(pricing), rates: textOf(pricing) })),
    (one, other) => one.id === other.id
  )
  return sql`
    INSERT INTO price_lists (id, rates)
    SELECT id, rates::jsonb FROM json_to_recordset(${JSON.stringify(lists)}::json) AS list (id bigint, rates text)
    ON CONFLICT (id) DO NOTHING`
}

export class PriceLists extends Context.Tag("gateway/PriceLists")<
  PriceLists,
  {
    /** Returns the rates for a `price_id` of the request log; undefined if they are not stored. */
    readonly find: (id: string) => Effect.Effect<ChatPricing | undefined>
  }
>() {
  static readonly layer = Layer.effect(
    PriceLists,
    Effect.map(SqlClient.SqlClient, (sql) =>
      PriceLists.of({
        find: (id) =>
          Effect.map(rows(sql`SELECT rates FROM price_lists WHERE id = ${id}`), ([row]) => row && pricingOf(row.rates))
      })
    )
  )
}

interface Dated {
  /** Unix milliseconds. */
  readonly at: number
}

interface DatedRoute {
  readonly cost_from?: ReadonlyArray<Dated>
}

interface DatedEntry {
  readonly pricing_from?: ReadonlyArray<Dated>
  readonly routes: ReadonlyArray<DatedRoute>
}

export const effectiveAt = <A extends Dated>(all: ReadonlyArray<A> | undefined, at: number): A | undefined =>
  all?.findLast((one) => one.at <= at)

/** Returns the route with its cost at a moment in Unix milliseconds. */
export const routeAt = <Cost, R extends { readonly cost?: Cost; readonly cost_from?: ReadonlyArray<Cost & Dated> }>(
  route: R,
  at: number
): R => {
  const cost = effectiveAt(route.cost_from, at)
  return cost === undefined ? route : { ...route, cost }
}

/** Returns the moments at which a price or cost changes, in order. */
export const datesOf = ({ pricing_from = [], routes }: DatedEntry): ReadonlyArray<number> =>
  Arr.sort(
    Arr.dedupe([...pricing_from, ...routes.flatMap(({ cost_from = [] }) => cost_from)].map(({ at }) => at)),
    Order.number
  )

const checkOrder = (report: Report, path: Path, all: ReadonlyArray<Dated> = []) =>
  all.forEach(({ at }, index) => {
    const previous = all[index - 1]
    if (previous !== undefined && previous.at >= at)
      report([...path, index, "at"], "must be later than the one above it")
  })

/** Returns the path of the price or cost that begins at a moment; undefined for any other key. */
const datedPathOf = (entry: DatedEntry, key: Path, at: number): Path | undefined => {
  const [first, second, third, ...rest] = key
  const indexIn = (all: ReadonlyArray<Dated> = []) => all.findIndex((one) => one.at === at)
  if (first === "pricing" || first === "variants") {
    const index = indexIn(entry.pricing_from)
    return index < 0 ? undefined : ["pricing_from", index, ...key.slice(first === "pricing" ? 1 : 0)]
  }
  if (first !== "routes" || typeof second !== "number" || third !== "cost") return undefined
  const index = indexIn(entry.routes[second]?.cost_from)
  return index < 0 ? undefined : ["routes", second, "cost_from", index, ...rest]
}

/** Checks the order of later prices and costs, and checks them by the rules that apply to the first ones. */
export const checkDates = <E extends DatedEntry>(
  report: Report,
  at: Path,
  surface: Pick<EntryOperations<E, never, never>, "check" | "entryAt">,
  entry: E,
  context: EntryContext
): void => {
  checkOrder(report, [...at, "pricing_from"], entry.pricing_from)
  entry.routes.forEach(({ cost_from }, index) => checkOrder(report, [...at, "routes", index, "cost_from"], cost_from))
  for (const date of datesOf(entry)) {
    const reportDated: Report = (path, message) => {
      const datedPath = datedPathOf(entry, path.slice(at.length), date)
      if (datedPath !== undefined) report([...at, ...datedPath], message)
    }
    surface.check(reportDated, at, surface.entryAt(entry, date), context)
  }
}

/** Returns a hint for each list of dated prices or costs whose last date has passed. */
export const findExpiredDates = (entry: DatedEntry & { readonly id: string }, now: number): ReadonlyArray<string> => {
  const isPast = (all: ReadonlyArray<Dated> = []) => (all.at(-1)?.at ?? Infinity) <= now
  return [
    ...(isPast(entry.pricing_from)
      ? [`${entry.id}: every date of pricing_from has passed: replace all prices with the last one`]
      : []),
    ...entry.routes.flatMap(({ cost_from }, index) =>
      isPast(cost_from)
        ? [`${entry.id}: every date of cost_from of routes[${index}] has passed: replace all costs with the last one`]
        : []
    )
  ]
}
