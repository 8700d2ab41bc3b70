import { getHeapStatistics } from "node:v8"
import { Effect, Layer, Metric, MetricBoundaries, MetricLabel, type Scope } from "effect"

/** Histogram bounds in seconds. */
const short = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5]
const long = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 1800]

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const nanoUsdCounter = (name: string, description: string) =>
  Metric.counter(name, { description, incremental: true, bigint: true })
const gauge = (name: string, description: string) => Metric.gauge(name, { description })
const histogram = (name: string, bounds: ReadonlyArray<number>, description: string) =>
  Metric.histogram(name, MetricBoundaries.fromIterable(bounds), description)

// docs/operating/monitoring.md documents each metric.
export const requests = counter("gateway_requests_total", "HTTP responses, by endpoint type, model, status and code")
export const requestSeconds = histogram("gateway_request_seconds", long, "Seconds until the end of the response")
export const firstByteSeconds = histogram("gateway_first_byte_seconds", long, "Seconds until the first output")
export const overheadSeconds = histogram("gateway_overhead_seconds", short, "Seconds not spent waiting for providers")
export const refused = counter("gateway_refused_total", "Requests refused before any attempt, by reason")
export const inFlight = gauge("gateway_in_flight", "Generation requests in progress")
export const connections = gauge("gateway_connections", "Open connections of clients")
export const connectionsClosed = counter("gateway_connections_closed_total", "Connections closed, by reason")
export const holdExceeded = counter("gateway_hold_exceeded_total", "Charges reduced to their hold")
export const holdLost = counter("gateway_hold_lost_total", "Settlements attempted after the hold was released")
export const settleFailed = counter("gateway_settle_failed_total", "Settlements abandoned after all retries")
export const swept = counter("gateway_holds_swept_total", "Holds of dead instances released")
export const usageEstimated = counter(
  "gateway_usage_estimated_total",
  "Responses whose tokens the gateway counted itself"
)
export const unread = counter("gateway_unread_total", "Unrecognized parts of provider responses, by part and route")
export const capsLowered = counter(
  "gateway_caps_lowered_total",
  "Chat requests whose output limit was reduced to fit the balance"
)
export const chargedNanoUsd = nanoUsdCounter("gateway_charged_nano_usd_total", "Charges, in nano-USD")
export const costNanoUsd = nanoUsdCounter(
  "gateway_cost_nano_usd_total",
  "Provider cost computed from the catalog, in nano-USD"
)
export const statedCostNanoUsd = counter("gateway_stated_cost_nano_usd_total", "Provider-reported cost, in nano-USD")
export const comparedCostNanoUsd = counter(
  "gateway_compared_cost_nano_usd_total",
  "Catalog cost of the requests with a provider-reported cost, in nano-USD"
)
export const tokens = counter("gateway_tokens_total", "Charged tokens, by kind")
export const webSearches = counter("gateway_web_searches_total", "Charged web searches")
export const attempts = counter("gateway_attempts_total", "Calls to providers, by route and outcome")
export const attemptSeconds = histogram("gateway_attempt_seconds", long, "Seconds until a provider's first output")
export const failovers = counter("gateway_failovers_total", "Calls to another route after one failed, by model")
export const affinity = counter(
  "gateway_affinity_total",
  "Responses of multi-turn conversations, by whether they kept their route"
)
export const circuits = gauge("gateway_circuits", "Processes by the state of the route's circuit")
export const organizationCircuits = gauge(
  "gateway_organization_circuits",
  "Organizations with a separate circuit of the route that is not closed"
)
export const videos = counter("gateway_videos_total", "Finished videos, by outcome")
export const videoDoubts = counter(
  "gateway_video_doubts_total",
  "Video submissions without a response, which the provider may have accepted"
)
export const webhooks = counter("gateway_webhooks_total", "Tries to deliver webhooks, by outcome")
export const paymentEvents = counter("gateway_payment_events_total", "Events of Stripe, by outcome")
export const logDropped = counter("gateway_log_rows_dropped_total", "Lost rows of the request log")
export const logWaiting = gauge("gateway_log_rows_waiting", "Rows of the request log waiting to be written")
export const statementSeconds = histogram(
  "gateway_statement_seconds",
  short,
  "Seconds of the SQL statements that create, settle or release holds"
)
export const batchSize = histogram(
  "gateway_statement_batch_size",
  [1, 2, 4, 8, 16, 32, 64, 128, 256],
  "Holds placed or closed by one statement"
)
export const databaseConnections = gauge("gateway_database_connections", "Connections in the database pool, by state")
export const databaseWaiting = gauge("gateway_database_waiting", "Statements waiting for a database connection")
export const databaseUp = gauge("gateway_database_up", "1 while the database responds and accepts writes")
const eventLoopDelay = histogram("gateway_event_loop_delay_seconds", short, "Seconds by which a 100 ms timer was late")
const residentMemory = gauge("process_resident_memory_bytes", "Resident memory")
const heapUsed = gauge("nodejs_heap_size_used_bytes", "Heap in use")
const startTime = gauge("process_start_time_seconds", "Start time of the process in Unix seconds")
const buildInfo = gauge("gateway_build_info", "1, with the version of the program and of Node.js")

/** How to merge the values of several workers. All other metrics are summed. */
export const merges: Readonly<Record<string, (a: number, b: number) => number>> = {
  gateway_build_info: Math.max,
  gateway_database_up: Math.min,
  process_start_time_seconds: Math.max
}

const collectors = new Set<() => void>()

/** Runs the collector before each snapshot, so a gauge is computed only when it is read. */
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

// Caches label arrays, because creating them takes longer than counting. Their number is small.
const labelSets = new WeakMap<Labelled, Map<string, ReadonlyArray<MetricLabel.MetricLabel>>>()

/** Returns the same array for equal labels, because a metric finds its series by the array's identity. */
const labelsOf = (metric: Labelled, labels: Labels) => {
  let sets = labelSets.get(metric)
  if (sets === undefined) labelSets.set(metric, (sets = new Map()))
  let name = ""
  for (const key in labels) name += `${labels[key]}\n`
  let labelSet = sets.get(name)
  if (labelSet === undefined) {
    labelSet = Object.entries(labels).map(([key, value]) => MetricLabel.make(key, value))
    sets.set(name, labelSet)
  }
  return labelSet
}

/** Adds the value to a counter, records it in a histogram, or sets a gauge. */
export const unsafeUpdate = (metric: Labelled, value: number, labels: Labels): void =>
  metric.unsafeUpdate(value, labelsOf(metric, labels))

export const unsafeCount = (counter: Metric.Metric.Counter<number>, labels: Labels): void =>
  unsafeUpdate(counter, 1, labels)

export const count = (counter: Metric.Metric.Counter<number>, labels: Labels): Effect.Effect<void> =>
  Effect.sync(() => unsafeCount(counter, labels))

// Exports these counters as 0 at startup, because Prometheus would not see an increase in a counter that first appears as 1.
for (const metric of [holdExceeded, holdLost, settleFailed, swept, usageEstimated, videoDoubts, logDropped]) {
  unsafeUpdate(metric, 0, {})
}
for (const reason of ["idle", "unread", "pipelined", "stalled"]) unsafeUpdate(connectionsClosed, 0, { reason })
for (const outcome of ["delivered", "retried", "failed", "gone"]) unsafeUpdate(webhooks, 0, { outcome })
for (const outcome of ["applied", "repeated", "ignored", "refused", "failed"])
  unsafeUpdate(paymentEvents, 0, { outcome })

const sampleMillis = 100

/** Uses Node's timer and not a fiber, which may be late for other reasons. */
const sampleEventLoop = Effect.acquireRelease(
  Effect.sync(() => {
    let due = performance.now() + sampleMillis
    return setInterval(() => {
      const now = performance.now()
      eventLoopDelay.unsafeUpdate(Math.max(0, now - due) / 1000, [])
      due = now + sampleMillis
    }, sampleMillis).unref()
  }),
  (timer) => Effect.sync(() => clearInterval(timer))
)

export const layer = ({ version }: { readonly version: string }) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      startTime.unsafeUpdate(performance.timeOrigin / 1000, [])
      unsafeUpdate(buildInfo, 1, { version, node: process.version, commit: process.env.GATEWAY_COMMIT ?? "" })
      yield* collect(() => {
        residentMemory.unsafeUpdate(process.memoryUsage.rss(), [])
        heapUsed.unsafeUpdate(getHeapStatistics().used_heap_size, [])
      })
      yield* sampleEventLoop
    })
  )
