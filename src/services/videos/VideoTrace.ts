import { Effect } from "effect"
import { resume, type SpanParent, Tracing } from "../tracing/Tracing.ts"
import type { LeasedJob } from "./VideoState.ts"

/** A job goes on in the trace of the request that created it, whichever instance works on it. */
export const makeVideoTrace = Effect.map(Tracing, ({ source }) => {
  const parentOf = (job: LeasedJob): SpanParent | undefined => resume(source, job.trace)

  /** One span for the whole life of the job. */
  const end = (job: LeasedJob, error?: string): void => {
    const route = job.step === "submit" ? undefined : job.route?.id
    parentOf(job)
      ?.start("video", {
        startedAt: BigInt(job.createdAt.getTime()) * 1_000_000n,
        attributes: {
          "gateway.video_id": job.id,
          "gateway.model": job.model,
          "gateway.organization_id": job.orgId,
          "gateway.route": route,
          "gateway.polls": job.polls,
          "gateway.error_code": error
        }
      })
      .end(error)
  }

  return { parentOf, end }
})
