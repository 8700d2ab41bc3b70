import { Effect, Metric, MetricBoundaries, MetricLabel, type Scope } from "effect"

/** Bounds in seconds. */
const short = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const long = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1800]

export const requests = Metric.counter("gateway_requests_total", {
  description: "Answers, by surface, model, status and code",
  incremental: true
})

export const requestSeconds = Metric.histogram(
  "gateway_request_seconds",
  MetricBoundaries.fromIterable(long),
  "Seconds from a request's arrival to its answer, of a stream to its end"
)

export const firstByteSeconds = Metric.histogram(
  "gateway_first_byte_seconds",
  MetricBoundaries.fromIterable(long),
  "Seconds from a request's arrival to the first output"
)

export const overheadSeconds = Metric.histogram(
  "gateway_overhead_seconds",
  MetricBoundaries.fromIterable(short),
  "Seconds of a request, of a stream up to its first output, that were not spent waiting for providers"
)

export const refused = Metric.counter("gateway_refused_total", {
  description: "Requests refused before a provider was asked, by reason",
  incremental: true
})

export const inFlight = Metric.gauge("gateway_in_flight", {
  description: "Generating requests being worked on"
})

export const connections = Metric.gauge("gateway_connections", {
  description: "Open connections of clients"
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

export const capsLowered = Metric.counter("gateway_caps_lowered_total", {
  description: "Chats whose output cap was lowered to what their organization can pay",
  incremental: true
})

export const chargedNanoUsd = Metric.counter("gateway_charged_nano_usd_total", {
  description: "Charged, in nano-USD",
  bigint: true,
  incremental: true
})

export const costNanoUsd = Metric.counter("gateway_cost_nano_usd_total", {
  description: "What providers charge where routes have a cost, failed attempts included, in nano-USD",
  bigint: true,
  incremental: true
})

export const tokens = Metric.counter("gateway_tokens_total", {
  description: "Tokens settled, by kind",
  incremental: true
})

export const webSearches = Metric.counter("gateway_web_searches_total", {
  description: "Web searches settled",
  incremental: true
})

export const attempts = Metric.counter("gateway_attempts_total", {
  description: "Calls to providers, by route and outcome",
  incremental: true
})

export const attemptSeconds = Metric.histogram(
  "gateway_attempt_seconds",
  MetricBoundaries.fromIterable(long),
  "Seconds of a call to a provider up to its answer, a stream's first output or its failure, by route"
)

export const failovers = Metric.counter("gateway_failovers_total", {
  description: "Calls to another route after one failed, by model",
  incremental: true
})

export const affinity = Metric.counter("gateway_affinity_total", {
  description: "Answers to conversations of models with several routes, by what became of their route",
  incremental: true
})

export const circuits = Metric.gauge("gateway_circuits", {
  description: "Processes in which the route's circuit is in the state"
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

export const logWaiting = Metric.gauge("gateway_log_rows_waiting", {
  description: "Request log rows waiting to be written"
})

export const statementSeconds = Metric.histogram(
  "gateway_statement_seconds",
  MetricBoundaries.fromIterable(short),
  "Seconds of a statement that places or closes holds"
)

export const batchSize = Metric.histogram(
  "gateway_statement_batch_size",
  MetricBoundaries.fromIterable([1, 2, 4, 8, 16, 32, 64, 128, 256]),
  "Holds placed or closed by one statement"
)

export const databaseConnections = Metric.gauge("gateway_database_connections", {
  description: "Connections of the database pool, by state"
})

export const databaseWaiting = Metric.gauge("gateway_database_waiting", {
  description: "Statements waiting for a connection of the database pool"
})

export const databaseUp = Metric.gauge("gateway_database_up", {
  description: "1 while the database answers and takes writes"
})

export const eventLoopDelay = Metric.histogram(
  "gateway_event_loop_delay_seconds",
  MetricBoundaries.fromIterable(short),
  "Seconds by which a timer was late, ten times a second"
)

export const residentMemory = Metric.gauge("process_resident_memory_bytes", {
  description: "Resident memory"
})

export const heapUsed = Metric.gauge("nodejs_heap_size_used_bytes", {
  description: "Heap in use"
})

export const startTime = Metric.gauge("process_start_time_seconds", {
  description: "Start of the process since the Unix epoch"
})

export const buildInfo = Metric.gauge("gateway_build_info", {
  description: "1, with the version of the program and of Node.js"
})

/** The values of workers are summed, except these. */
export const merges: Readonly<Record<string, (a: number, b: number) => number>> = {
  gateway_build_info: Math.max,
  gateway_database_up: Math.min,
  process_start_time_seconds: Math.max
}

// A counter that begins at its first increment has no increase.
for (const counter of [holdExceeded, holdLost, settleFailed, swept, usageEstimated, videoDoubts, logDropped]) {
  counter.unsafeUpdate(0, [])
}

const collectors = new Set<() => void>()

/** Runs before each snapshot, for gauges that are looked up rather than followed. */
export const collect = (collector: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => collectors.add(collector)),
      () => Effect.sync(() => collectors.delete(collector))
    )
  )

export const unsafeSnapshot = (): ReturnType<typeof Metric.unsafeSnapshot> => {
  for (const collector of collectors) collector()
  return Metric.unsafeSnapshot()
}

type Labels = Readonly<Record<string, string>>
type Labelled = Pick<Metric.Metric<unknown, number, unknown>, "unsafeUpdate">

// Labelling a metric for each request would cost more than counting; labels come from small fixed sets.
const labelled = new WeakMap<Labelled, Map<string, ReadonlyArray<MetricLabel.MetricLabel>>>()

/** The metric finds its series by the identity of this array. */
const labelsOf = (metric: Labelled, labels: Labels) => {
  let known = labelled.get(metric)
  if (known === undefined) labelled.set(metric, (known = new Map()))
  let name = ""
  for (const key in labels) name += `${labels[key]}\n`
  let made = known.get(name)
  if (made === undefined) {
    made = Object.entries(labels).map(([key, value]) => MetricLabel.make(key, value))
    known.set(name, made)
  }
  return made
}

/** Adds to a counter, observes in a histogram, sets a gauge. */
export const unsafeUpdate = (metric: Labelled, value: number, labels: Labels): void =>
  metric.unsafeUpdate(value, labelsOf(metric, labels))

export const unsafeCount = (counter: Metric.Metric.Counter<number>, labels: Labels): void =>
  unsafeUpdate(counter, 1, labels)

export const count = (counter: Metric.Metric.Counter<number>, labels: Labels): Effect.Effect<void> =>
  Effect.sync(() => unsafeCount(counter, labels))
