import { Schema } from "effect"
import { Family } from "./http/Prometheus.ts"

const Families = Schema.Array(Family)

/** It serves: the address is open. */
export class Ready extends Schema.TaggedClass<Ready>()("Ready", {}) {}

/** The operator has been shown what a start shows, the address among it. */
export class Announced extends Schema.TaggedClass<Announced>()("Announced", { url: Schema.String }) {}

/** Its identity among the instances, which may change. */
export class Joined extends Schema.TaggedClass<Joined>()("Joined", { instance: Schema.String }) {}

/** Asks for the metrics of all workers. */
export class MetricsWanted extends Schema.TaggedClass<MetricsWanted>()("MetricsWanted", { question: Schema.Int }) {}

/** Its own metrics, as the main process asked. */
export class MetricsOfWorker extends Schema.TaggedClass<MetricsOfWorker>()("MetricsOfWorker", {
  question: Schema.Int,
  families: Families
}) {}

/** What a worker says to the main process. */
export const FromWorker = Schema.Union(Ready, Announced, Joined, MetricsWanted, MetricsOfWorker)
export type FromWorker = typeof FromWorker.Type

/** Show what a start shows: all workers serve. */
export class Announce extends Schema.TaggedClass<Announce>()("Announce", {}) {}

/** The identities of all workers, of those that ended a moment ago too. */
export class Joiners extends Schema.TaggedClass<Joiners>()("Joiners", { instances: Schema.Array(Schema.String) }) {}

/** Asks for the metrics of this worker. */
export class MetricsAsked extends Schema.TaggedClass<MetricsAsked>()("MetricsAsked", { question: Schema.Int }) {}

/** The metrics of all workers. */
export class MetricsOfAll extends Schema.TaggedClass<MetricsOfAll>()("MetricsOfAll", {
  question: Schema.Int,
  families: Families
}) {}

/** What the main process says to a worker. */
export const FromMain = Schema.Union(Announce, Joiners, MetricsAsked, MetricsOfAll)
export type FromMain = typeof FromMain.Type
