import { Effect, Metric, MetricLabel } from "effect"

/** Workers are summed, so a gauge must be additive. */
export const requests = Metric.counter("gateway_requests_total", {
  description: "Answers, by surface, model, status and code",
  incremental: true
})

export const refused = Metric.counter("gateway_refused_total", {
  description: "Requests refused before a provider was asked, by reason",
  incremental: true
})

export const inFlight = Metric.gauge("gateway_in_flight", {
  description: "Generating requests being worked on"
})

export const holdExceeded = Metric.counter("gateway_hold_exceeded_total", {
  description: "Charges cut to their hold; the excess is the operator's",
  incremental: true
})

export const holdLost = Metric.counter("gateway_hold_lost_total", {
  description: "Settlements whose hold had been released by another instance",
  incremental: true
})

export const settleFailed = Metric.counter("gateway_settle_failed_total", {
  description: "Settlements given up after their retries",
  incremental: true
})

export const swept = Metric.counter("gateway_holds_swept_total", {
  description: "Holds of dead instances released",
  incremental: true
})

export const usageEstimated = Metric.counter("gateway_usage_estimated_total", {
  description: "Answers whose tokens the gateway counted itself",
  incremental: true
})

export const chargedNanoUsd = Metric.counter("gateway_charged_nano_usd_total", {
  description: "Charged, in nano-USD",
  bigint: true,
  incremental: true
})

export const tokens = Metric.counter("gateway_tokens_total", {
  description: "Tokens settled, by kind",
  incremental: true
})

export const attempts = Metric.counter("gateway_attempts_total", {
  description: "Calls to providers, by provider and outcome",
  incremental: true
})

export const videos = Metric.counter("gateway_videos_total", {
  description: "Renders that ended, by outcome",
  incremental: true
})

export const videoDoubts = Metric.counter("gateway_video_doubts_total", {
  description: "Submits that may have reached a provider without an answer, each perhaps paid for nothing",
  incremental: true
})

export const webhooks = Metric.counter("gateway_webhooks_total", {
  description: "Tries to deliver webhooks, by outcome",
  incremental: true
})

export const logDropped = Metric.counter("gateway_log_rows_dropped_total", {
  description: "Request log rows lost because the database was away for too long",
  incremental: true
})

// Labelling a metric for each request would cost more than counting; labels come from small fixed sets.
const labelled = new WeakMap<Metric.Metric.Counter<number>, Map<string, ReadonlyArray<MetricLabel.MetricLabel>>>()

/** The metric finds its series by the identity of this array. */
const labelsOf = (counter: Metric.Metric.Counter<number>, labels: Readonly<Record<string, string>>) => {
  let known = labelled.get(counter)
  if (known === undefined) labelled.set(counter, (known = new Map()))
  let name = ""
  for (const key in labels) name += `${labels[key]}\n`
  let made = known.get(name)
  if (made === undefined) {
    made = Object.entries(labels).map(([key, value]) => MetricLabel.make(key, value))
    known.set(name, made)
  }
  return made
}

export const unsafeAdd = (
  counter: Metric.Metric.Counter<number>,
  amount: number,
  labels: Readonly<Record<string, string>>
): void => counter.unsafeUpdate(amount, labelsOf(counter, labels))

export const unsafeCount = (counter: Metric.Metric.Counter<number>, labels: Readonly<Record<string, string>>): void =>
  unsafeAdd(counter, 1, labels)

export const count = (
  counter: Metric.Metric.Counter<number>,
  labels: Readonly<Record<string, string>>
): Effect.Effect<void> => Effect.sync(() => unsafeCount(counter, labels))
