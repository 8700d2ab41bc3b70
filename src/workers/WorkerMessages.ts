import { Schema } from "effect"
import { Family } from "../http/system/Prometheus.ts"

const Families = Schema.Array(Family)

export class Ready extends Schema.TaggedClass<Ready>()("Ready", {}) {}

export class Announced extends Schema.TaggedClass<Announced>()("Announced", { url: Schema.String }) {}

export class Registered extends Schema.TaggedClass<Registered>()("Registered", { instance: Schema.String }) {}

export class TotalsRequest extends Schema.TaggedClass<TotalsRequest>()("TotalsRequest", { request: Schema.Int }) {}

export class WorkerMetrics extends Schema.TaggedClass<WorkerMetrics>()("WorkerMetrics", {
  request: Schema.Int,
  families: Families
}) {}

export const FromWorker = Schema.Union(Ready, Announced, Registered, TotalsRequest, WorkerMetrics)
export type FromWorker = typeof FromWorker.Type

export class Announce extends Schema.TaggedClass<Announce>()("Announce", {}) {}

/** Includes workers that ended a moment ago. */
export class Instances extends Schema.TaggedClass<Instances>()("Instances", {
  instances: Schema.Array(Schema.String)
}) {}

/** Reads the catalog and the credentials again. */
export class Reload extends Schema.TaggedClass<Reload>()("Reload", {}) {}

export class WorkerMetricsRequest extends Schema.TaggedClass<WorkerMetricsRequest>()("WorkerMetricsRequest", {
  request: Schema.Int
}) {}

export class Totals extends Schema.TaggedClass<Totals>()("Totals", {
  request: Schema.Int,
  families: Families
}) {}

export const FromMain = Schema.Union(Announce, Instances, Reload, WorkerMetricsRequest, Totals)
export type FromMain = typeof FromMain.Type
