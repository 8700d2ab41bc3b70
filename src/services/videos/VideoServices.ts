import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import { Ledger } from "../ledger/Ledger.ts"
import { Refunds } from "../ledger/Refunds.ts"
import { Fetcher } from "../media/Fetcher.ts"
import { MediaStore } from "../media/MediaStore.ts"
import { ReferenceImages } from "../media/ReferenceImages.ts"
import { ProviderRouter } from "../routing/ProviderRouter.ts"
import { Failpoint } from "../runtime/Failpoint.ts"
import { Ids } from "../runtime/Ids.ts"
import { makeKeyedSemaphore } from "../runtime/KeyedSemaphore.ts"
import { backoffFor } from "../runtime/Schedules.ts"
import { Timings } from "../runtime/Timings.ts"
import { resume, type SpanParent, Tracing } from "../tracing/Tracing.ts"
import { VideoSql } from "./VideoSql.ts"
import { type LeasedJob, makePollDelay } from "./VideoState.ts"
import { makeVideoViews } from "./VideoViews.ts"

/** Limits the connections that wait for locks of organizations. */
const maxTransactions = 3

/** Returns what all functions of this room need. A job fails once `timeout` has passed since its creation. */
export const makeVideoServices = Effect.fnUntraced(function* (timeout: Duration.DurationInput) {
  const sql = yield* SqlClient.SqlClient
  const timings = yield* Timings
  return {
    catalog: yield* Catalog,
    failpoint: yield* Failpoint,
    fetcher: yield* Fetcher,
    idempotency: yield* Idempotency,
    ids: yield* Ids,
    ledger: yield* Ledger,
    references: yield* ReferenceImages,
    refunds: yield* Refunds,
    router: yield* ProviderRouter,
    store: yield* MediaStore,
    tracing: yield* Tracing,
    sql,
    rows: new VideoSql(sql, timings.videoLease),
    views: makeVideoViews(sql),
    withOrgPermit: yield* makeKeyedSemaphore(maxTransactions),
    timings,
    timeoutSeconds: Duration.toSeconds(timeout),
    pollDelay: makePollDelay(timings.pollVideoAfter),
    settleRetries: backoffFor(timings.settleWithin),
    /** The leases of jobs with running submits. Shutdown waits for them. */
    submitting: new Set<string>()
  }
})
export type VideoServices = Effect.Effect.Success<ReturnType<typeof makeVideoServices>>

/** Returns the parent of the job's spans, so every instance continues the trace of the request that created the job. */
export const parentOf = ({ tracing }: VideoServices, job: LeasedJob): SpanParent | undefined =>
  resume(tracing.source, job.trace)
