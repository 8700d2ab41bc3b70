import { Schema } from "effect"
import { Family } from "../http/system/Prometheus.ts"

const Families = Schema.Array(Family)

/** It serves: the address is open. */
export class Ready extends Schema.TaggedClass<Ready>()("Ready", {}) {}

/** The operator has been shown what a start shows, the address among it. */
export class Announced extends Schema.TaggedClass<Announced>()("Announced", { url: Schema.String }) {}

/** Its identity among the instances, which may change. */
export class Registered extends Schema.TaggedClass<Registered>()("Registered", { instance: Schema.String }) {}

/** Asks for the metrics of all workers. */
export class TotalsRequest extends Schema.TaggedClass<TotalsRequest>()("TotalsRequest", { request: Schema.Int }) {}

/** Its own metrics, as the main process asked. */
export class WorkerMetrics extends Schema.TaggedClass<WorkerMetrics>()("WorkerMetrics", {
  request: Schema.Int,
  families: Families
}) {}

/** What a worker says to the main process. */
export const FromWorker = Schema.Union(Ready, Announced, Registered, TotalsRequest, WorkerMetrics)
export type FromWorker = typeof FromWorker.Type

/** Show what a start shows: all workers serve. */
export class Announce extends Schema.TaggedClass<Announce>()("Announce", {}) {}

/** The identities of all workers, of those that ended a moment ago too. */
export class Instances extends Schema.TaggedClass<Instances>()("Instances", {
  instances: Schema.Array(Schema.String)
}) {}

/** Asks for the metrics of this worker. */
export class WorkerMetricsRequest extends Schema.TaggedClass<WorkerMetricsRequest>()("WorkerMetricsRequest", {
  request: Schema.Int
}) {}

/** The metrics of all workers. */
export class Totals extends Schema.TaggedClass<Totals>()("Totals", {
  request: Schema.Int,
  families: Families
}) {}

/** What the main process says to a worker. */
export const FromMain = Schema.Union(Announce, Instances, WorkerMetricsRequest, Totals)
export type FromMain = typeof FromMain.Type
