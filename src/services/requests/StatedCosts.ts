import * as Metrics from "../metrics/Metrics.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/** Counts what the provider states beside what the catalog says, where both are known; call once, after the charge. */
export const countStatedCost = ({ cost, route, statedCost }: RequestRecord): void => {
  if (statedCost === undefined || cost === undefined || route === undefined) return
  Metrics.unsafeUpdate(Metrics.statedCostNanoUsd, Number(statedCost), { route: route.id })
  Metrics.unsafeUpdate(Metrics.comparedCostNanoUsd, Number(cost), { route: route.id })
}
