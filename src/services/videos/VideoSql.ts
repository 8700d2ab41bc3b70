import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { type NanoUsd, NanoUsdFromRow } from "../../domain/Money.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { AttemptEntry } from "../routing/Attempts.ts"
import { storable } from "../sql/Statement.ts"
import type { VideoError } from "./Errors.ts"
import { KeptRoute } from "./FrozenRoute.ts"

/** Seconds that a lease lasts; whoever works renews it well before. */
export const leaseSeconds = 25

/** A job as the one who holds its lease sees it. */
export const LeasedJob = Schema.Struct({
  id: Schema.String,
  orgId: OrgId,
  keyId: KeyId,
  holdId: Schema.String,
  model: Schema.String,
  seconds: Schema.Number,
  price: NanoUsdFromRow,
  prompt: Schema.String,
  referenceUrl: Schema.NullOr(Schema.String),
  reference: Schema.NullOr(Schema.String),
  status: Schema.Literal("queued", "in_progress", "completed", "failed"),
  step: Schema.Literal("submit", "submitting", "rendering", "over"),
  route: KeptRoute,
  handle: Schema.NullOr(Schema.String),
  tried: Schema.Array(Schema.String),
  spare: Schema.Boolean,
  doubts: Schema.Number,
  polls: Schema.Number,
  downloads: Schema.Number,
  cancelling: Schema.Boolean,
  /** Whether its customer knows of it, or may still come to. */
  isAccepted: Schema.Boolean,
  lease: Schema.String,
  /** Milliseconds to the deadline; negative once it has passed. */
  leftMs: Schema.Number
})
export type LeasedJob = typeof LeasedJob.Type

const decodeJobs = Schema.decodeUnknown(Schema.Array(LeasedJob))
const decodeCount = Schema.decodeUnknown(Schema.Array(Schema.Struct({ downloads: Schema.Number })))

export interface NewJob {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly hold: string
  readonly requestId: string
  readonly model: string
  readonly seconds: number
  readonly price: NanoUsd
  readonly prompt: string
  readonly referenceUrl: string | undefined
  readonly reference: string | undefined
  readonly timeoutSeconds: number
  readonly lease: string
}

/** Ids of jobs that are not to be claimed: at all, or before they are over or late. */
export interface Exceptions {
  readonly except?: ReadonlyArray<string>
  readonly passedOver?: ReadonlyArray<string>
}

export type Outcome = (
  | { readonly status: "completed"; readonly media: string; readonly cost: bigint | undefined }
  | { readonly status: "failed"; readonly error: VideoError; readonly cancelling: boolean }
) & {
  /** Whether the sandbox rendered it, whose handles hold the prompt. */
  readonly sandbox: boolean
}

const longestDetail = 200

/** As JSON that PostgreSQL takes; providers write the details. */
const recorded = (attempts: ReadonlyArray<AttemptEntry>): string =>
  JSON.stringify(
    attempts.map((attempt) =>
      attempt.detail === undefined ? attempt : { ...attempt, detail: storable(attempt.detail.slice(0, longestDetail)) }
    )
  )

const make = (sql: SqlClient.SqlClient) => {
  const columns = sql.literal(
    "videos.*, accepted_at IS NOT NULL AS is_accepted, (extract(epoch FROM videos.deadline - now()) * 1000)::double precision AS left_ms"
  )
  const held = (job: Pick<LeasedJob, "id" | "lease">) => sql`id = ${job.id} AND lease = ${job.lease} AND step <> 'over'`
  const did = Effect.map((rows: ReadonlyArray<unknown>) => rows.length > 0)

  return {
    insert: (job: NewJob) =>
      sql`
        INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, reference_url,
          reference, deadline, lease, lease_until)
        VALUES (${job.id}, ${job.org}, ${job.key}, ${job.hold}, ${job.requestId}, ${job.model}, ${job.seconds},
          ${job.price}, ${job.prompt}, ${job.referenceUrl ?? null}, ${job.reference ?? null},
          now() + ${job.timeoutSeconds} * interval '1 second', ${job.lease}, now() + ${leaseSeconds} * interval '1 second')
        ON CONFLICT (id) DO NOTHING`,

    /**
     * Takes leases of jobs that have something to do and that nobody works on. One whose creator died before it had
     * submitted or answered, without an idempotency key to ask for it again, stays unaccepted: nobody knows of it.
     */
    claim: (limit: number, { except = [], passedOver = [] }: Exceptions = {}) =>
      Effect.flatMap(
        sql`
          WITH due AS (
            SELECT id, accepted_at IS NULL AND lease_until IS NOT NULL AND step = 'submit' AND NOT EXISTS (
                SELECT FROM idempotency_keys AS kept WHERE kept.hold_id = videos.hold_id AND key IS NOT NULL
              ) AS is_unknown
            FROM videos
            WHERE next_at <= now() AND (lease_until IS NULL OR lease_until <= now()) AND id <> ALL (${except}::text[])
              AND (id <> ALL (${passedOver}::text[]) OR step = 'over' OR deadline <= now())
            ORDER BY next_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
          )
          UPDATE videos SET lease = gen_random_uuid(), lease_until = now() + ${leaseSeconds} * interval '1 second',
            accepted_at = CASE WHEN step = 'over' OR is_unknown THEN accepted_at ELSE coalesce(accepted_at, now()) END
          FROM due WHERE videos.id = due.id
          RETURNING ${columns}`,
        decodeJobs
      ),

    held: (id: string, lease: string) =>
      Effect.flatMap(sql`SELECT ${columns} FROM videos WHERE id = ${id} AND lease = ${lease}`, decodeJobs),

    /** Milliseconds until the next job is due, which is negative where one is; none without a job. */
    nextDue: (except: ReadonlyArray<string>) =>
      Effect.map(
        sql<{ readonly ms: number | null }>`
          SELECT (extract(epoch FROM min(greatest(next_at, lease_until)) - now()) * 1000)::double precision AS ms
          FROM videos WHERE next_at IS NOT NULL AND id <> ALL (${except}::text[])`,
        ([row]) => row?.ms ?? undefined
      ),

    /** Passes over jobs that are being changed: nobody can take those, and the others must not wait for them. */
    renew: (jobs: ReadonlyArray<Pick<LeasedJob, "id" | "lease">>) => sql`
      WITH mine AS (
        SELECT id FROM videos
        WHERE id = ANY(${jobs.map(({ id }) => id)}::text[]) AND lease = ANY(${jobs.map(({ lease }) => lease)}::uuid[])
        FOR UPDATE SKIP LOCKED
      )
      UPDATE videos SET lease_until = now() + ${leaseSeconds} * interval '1 second' FROM mine WHERE videos.id = mine.id`,

    /** Lets go of a job, to be looked at again after so many milliseconds. */
    rest: (job: Pick<LeasedJob, "id" | "lease">, ms: number) => sql`
      UPDATE videos SET lease = NULL, lease_until = NULL, next_at = now() + ${Math.round(ms)} * interval '1 millisecond'
      WHERE id = ${job.id} AND lease = ${job.lease} AND next_at IS NOT NULL`,

    referenced: (job: LeasedJob, name: string) =>
      did(sql`UPDATE videos SET reference = ${name} WHERE ${held(job)} RETURNING id`),

    /** Committed before a submit leaves: from here to `rendering` nobody knows whether the provider has it. */
    submitting: (
      job: LeasedJob,
      route: { readonly id: string; readonly frozen: string },
      { doubts, spare }: Pick<LeasedJob, "doubts" | "spare">
    ) =>
      did(sql`
        UPDATE videos SET step = 'submitting', route = ${route.frozen}, spare = ${spare}, doubts = ${doubts},
          tried = CASE WHEN ${route.id}::text = ANY(tried) THEN tried ELSE tried || ${route.id}::text END
        WHERE ${held(job)} RETURNING id`),

    rendering: (job: LeasedJob, handle: string, attempts: ReadonlyArray<AttemptEntry>) =>
      did(sql`
        UPDATE videos SET step = 'rendering', handle = ${handle}, polls = 0, downloads = 0,
          attempts = CASE step WHEN 'rendering' THEN attempts ELSE attempts || ${recorded(attempts)}::text::jsonb END
        WHERE ${held(job)} RETURNING id`),

    /** Back to the beginning, for one more route and no other. */
    again: (job: LeasedJob, doubts: number) =>
      did(sql`
        UPDATE videos SET step = 'submit', handle = NULL, spare = false, doubts = ${doubts}
        WHERE ${held(job)} RETURNING id`),

    /** A submit may have arrived, and none is made after it. */
    doubted: (job: LeasedJob, doubts: number) =>
      did(sql`UPDATE videos SET doubts = ${doubts}, spare = false WHERE ${held(job)} RETURNING id`),

    polled: (job: LeasedJob, started: boolean) =>
      did(sql`
        UPDATE videos SET polls = polls + 1,
          status = CASE WHEN ${started} THEN 'in_progress' ELSE status END
        WHERE ${held(job)} RETURNING id`),

    /** Says how many downloads of this render have failed; none where the job is somebody else's. */
    notDownloaded: (job: LeasedJob) =>
      sql`UPDATE videos SET downloads = downloads + 1 WHERE ${held(job)} RETURNING downloads`.pipe(
        Effect.flatMap(decodeCount),
        Effect.map(([row]) => row?.downloads)
      ),

    /**
     * Ends the job, inside a transaction that also closes its hold. Says whether the customer had been told of it,
     * none where the job was not the holder's to end.
     */
    finish: (job: Pick<LeasedJob, "id" | "lease">, outcome: Outcome, attempts: ReadonlyArray<AttemptEntry>) =>
      Effect.map(
        outcome.status === "completed"
          ? sql<{ readonly accepted: boolean }>`
              UPDATE videos SET status = 'completed', step = 'over', completed_at = now(), media = ${outcome.media},
                sandbox = ${outcome.sandbox}, cost = ${outcome.cost ?? null}, prompt = '', reference_url = NULL,
                handle = CASE WHEN ${outcome.sandbox} THEN NULL ELSE handle END, next_at = NULL, lease = NULL, lease_until = NULL
              WHERE ${held(job)} RETURNING accepted_at IS NOT NULL AS accepted`
          : sql<{ readonly accepted: boolean }>`
              UPDATE videos SET status = 'failed', step = 'over', completed_at = now(), error_code = ${outcome.error.code},
                error_message = ${outcome.error.message}, prompt = '', reference_url = NULL, cancelling = ${outcome.cancelling},
                handle = CASE WHEN ${outcome.sandbox} THEN NULL ELSE handle END, attempts = attempts || ${recorded(attempts)}::text::jsonb,
                next_at = CASE WHEN ${outcome.cancelling} THEN now() END, lease = NULL, lease_until = NULL
              WHERE ${held(job)} RETURNING accepted_at IS NOT NULL AS accepted`,
        ([row]) => row?.accepted
      ),

    /** As `finish`, of a job that failed with this error whoever said so. */
    failedWith: (id: string, { code, message }: VideoError) =>
      Effect.map(
        sql<{ readonly accepted: boolean }>`
          SELECT accepted_at IS NOT NULL AS accepted FROM videos
          WHERE id = ${id} AND status = 'failed' AND error_code = ${code} AND error_message = ${message}`,
        ([row]) => row?.accepted
      ),

    mediaOf: (id: string) =>
      Effect.map(
        sql<{ readonly media: string | null }>`SELECT media FROM videos WHERE id = ${id}`,
        ([row]) => row?.media ?? undefined
      ),

    /** The provider has been told, or cannot be. */
    cancelled: (job: Pick<LeasedJob, "id" | "lease">) => sql`
      UPDATE videos SET cancelling = false, next_at = NULL, lease = NULL, lease_until = NULL
      WHERE id = ${job.id} AND lease = ${job.lease}`
  }
}

/** Every statement about jobs. What changes a job does so only for the holder of its lease, and says whether it did. */
export class VideoSql extends Context.Tag("gateway/VideoSql")<VideoSql, ReturnType<typeof make>>() {
  static readonly layer = Layer.effect(VideoSql, Effect.map(SqlClient.SqlClient, make))
}
