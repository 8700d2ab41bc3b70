import { Array as Arr, Effect } from "effect"
import { limitTo, pluralize } from "../domain/Wording.ts"
import { discountLossesOf, type Loss, lossText } from "../services/admin/CatalogRecord.ts"
import { Dashboard } from "../services/admin/Dashboard.ts"
import type { Alert, AlertKind } from "../services/admin/DashboardRecord.ts"
import { type Organization, Organizations } from "../services/admin/Organizations.ts"
import { windowMinutes } from "../services/admin/RequestAlerts.ts"
import { readSaleStatesNow } from "./CliServices.ts"
import type * as Output from "./Output.ts"
import type { CatalogReport } from "./prices/Check.ts"

type State = "ok" | "warning" | "problem"

export type Finding = {
  readonly check: string
  readonly state: State
  readonly detail: string
  /** All items of a detail that names only some of them. */
  readonly items?: ReadonlyArray<string>
}

/** `detail` includes the remedy, if there is a problem. */
export const finding = (check: string, state: State, detail: string): Finding => ({ check, state, detail })

export const ok = (check: string, detail: string) => finding(check, "ok", detail)
export const warning = (check: string, detail: string) => finding(check, "warning", detail)
export const problem = (check: string, detail: string) => finding(check, "problem", detail)

const maxItems = 5

/** Names the first five items and counts the others. */
export const abbreviate = (items: ReadonlyArray<string>, separator = ", ") => limitTo(items, maxItems).join(separator)

const count = (findings: ReadonlyArray<Finding>, state: State) =>
  findings.filter((finding) => finding.state === state).length

export const report = (findings: ReadonlyArray<Finding>): Output.Output => {
  const [problems, warnings] = [count(findings, "problem"), count(findings, "warning")]
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.map(({ check, detail, state }) => `${state.padEnd(8)} ${check.padEnd(width)}  ${detail}`)
  return {
    document: { healthy: problems === 0, problems, warnings, data: findings },
    text: lines.join("\n"),
    failure: problems === 0 ? undefined : `Found ${pluralize(problems, "problem")}.`
  }
}

interface Check {
  readonly toFinding: (check: string, detail: string) => Finding
  readonly kinds: ReadonlyArray<AlertKind>
  readonly okText: string
  readonly command: string
}

/** Low balances are missing, because they are the organizations' problem and not the gateway's. */
const checks: Readonly<Record<string, Check>> = {
  models: { toFinding: problem, kinds: ["model_down"], okText: "all are available", command: "gateway providers" },
  requests: {
    toFinding: problem,
    kinds: ["high_error_rate"],
    okText: `few or none failed within ${windowMinutes} minutes`,
    command: `gateway requests --status error --since ${windowMinutes}m`
  },
  routes: {
    toFinding: warning,
    kinds: ["route_failing", "circuit", "route_disabled"],
    okText: "none is failing or disabled, and no circuit breaker is open",
    command: "gateway providers"
  },
  instances: {
    toFinding: warning,
    kinds: ["catalog_problem"],
    okText: "all serve the same catalog",
    command: "gateway catalog reload"
  },
  margins: {
    toFinding: warning,
    kinds: ["sold_below_cost", "cost_unknown"],
    okText: "no request of the last day was sold below cost or at an unknown cost",
    command: "gateway usage --by model,route --since 1d"
  },
  costs: {
    toFinding: warning,
    kinds: ["cost_drift"],
    okText: "all match the provider-reported costs of the last day",
    command: "gateway usage --by route --since 1d --json"
  },
  videos: { toFinding: warning, kinds: ["stuck_video"], okText: "none is late", command: "gateway videos list" },
  payments: {
    toFinding: warning,
    kinds: ["payment_refused", "payment_disputed", "payment_reversal_amount"],
    okText: "all are credited, none is disputed, and no refund needs an amount",
    command: "gateway payments list"
  },
  holds: { toFinding: warning, kinds: ["old_hold"], okText: "none is stale", command: "gateway holds" },
  webhooks: {
    toFinding: warning,
    kinds: ["webhook_failing", "webhook_failed"],
    okText: "all deliveries succeed",
    command: "gateway webhooks list"
  }
}

const findingsOf = (alerts: ReadonlyArray<Alert>): ReadonlyArray<Finding> =>
  Object.entries(checks).map(([check, { command, kinds, okText, toFinding }]) => {
    const found = alerts.filter(({ kind }) => kinds.includes(kind))
    if (found.length === 0) return ok(check, okText)
    const summary = abbreviate(found.map(({ detail, title }) => `${title} (${detail.replace(/\.$/, "")})`))
    return toFinding(check, `${summary}. Run ${command} for details`)
  })

/** Reports the alerts of the console's dashboard. */
export const checkAlerts = Effect.map(
  Effect.flatMap(Dashboard, ({ read }) => read),
  ({ attention }) => findingsOf(attention)
)

/** Returns a line such as `20 % (acme, globex): 3 prices of talk@first` for each discount with losses, largest first. */
const discountLines = (
  organizations: ReadonlyArray<Pick<Organization, "name" | "discount_percent">>,
  lossesAt: (percent: number) => ReadonlyArray<Loss>
): ReadonlyArray<string> =>
  Object.values(Arr.groupBy(organizations, ({ discount_percent }) => String(discount_percent)))
    .toSorted(([one], [other]) => other.discount_percent - one.discount_percent)
    .flatMap((group) => {
      const [{ discount_percent }] = group
      const losses = lossesAt(discount_percent)
      const names = abbreviate(group.map(({ name }) => name))
      const routes = abbreviate(Arr.dedupe(losses.map(({ route }) => route)))
      return losses.length === 0
        ? []
        : [`${discount_percent} % (${names}): ${pluralize(losses.length, "price")} of ${routes}`]
    })

/** Warns before anything is sold: the alerts report only requests that were. */
export const checkDiscounts = Effect.gen(function* () {
  const all = yield* Effect.flatMap(Organizations, ({ list }) => list)
  const discounted = all.filter(({ discount_percent }) => discount_percent > 0)
  if (discounted.length === 0) return ok("discounts", "no organization has one")
  const states = yield* readSaleStatesNow
  const percents = Arr.dedupe(discounted.map(({ discount_percent }) => discount_percent))
  const losses = new Map(percents.map((percent) => [percent, discountLossesOf(states, [percent])]))
  const lines = discountLines(discounted, (percent) => losses.get(percent) ?? [])
  if (lines.length === 0) return ok("discounts", "no discounted price is below the costs in the catalog")
  const detail = `below the costs in the catalog at a discount of ${abbreviate(lines, "; ")}. Lower the discount, or raise the price`
  return { ...warning("discounts", detail), items: [...losses.values()].flat().map(lossText) }
})

export const checkPrices = ({
  losses,
  summary,
  unitPrices
}: Pick<CatalogReport, "losses" | "summary" | "unitPrices">): Finding => {
  const lines = [...unitPrices, ...summary.losses]
  if (lines.length === 0) return ok("prices", "all are at or above the costs in the catalog")
  const detail = `${abbreviate(lines, "; ")}. Run gateway catalog check for margins`
  return { ...warning("prices", detail), items: [...unitPrices, ...losses] }
}
