import type { SqlClient, Statement } from "@effect/sql"
import { Duration, Effect, Schema } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { AttemptEntry } from "../routing/Attempt.ts"
import type { ProviderFailure } from "../routing/Provider.ts"
import { toStorable } from "../sql/SqlStatement.ts"
import { type JobAt, type Lease, LeasedJob, type LeasedTransition, transitions, type VideoError } from "./VideoState.ts"

const maxDetail = 200

const toDetail = (text: string): string => toStorable(text.slice(0, maxDetail))

const attemptsJson = (attempts: ReadonlyArray<AttemptEntry>): string =>
  JSON.stringify(
    attempts.map(({ detail, providerRequestId, ...attempt }) => ({
      ...attempt,
      detail: detail === undefined ? undefined : toDetail(detail),
      provider_request_id: providerRequestId
    }))
  )

/** The failure of an attempt that the provider accepted or may have accepted. */
export type AttemptFailure = Pick<ProviderFailure, "class" | "status" | "detail">

export const unconfirmedSubmit: AttemptFailure = {
  class: "network",
  status: undefined,
  detail: "the submit was not confirmed; the provider may have received it"
}

export const deadlineFailure = (lastError: string | null): AttemptFailure => ({
  class: "timeout",
  status: undefined,
  detail: `the render did not finish before its deadline${lastError === null ? "" : `; last error: ${lastError}`}`
})

/**
 * Returns SQL for `attempts` in which the last one, the accepted submit, gets these fields and the time of its render.
 */
export const endLastAttempt = (
  sql: SqlClient.SqlClient,
  fields: Readonly<Record<string, string | number | undefined>>
): Statement.Fragment =>
  sql`(attempts - (-1)) || jsonb_build_array(
      coalesce(attempts -> -1, '{}') - 'status' || jsonb_build_object('ms', round(
        coalesce((attempts -> -1 ->> 'ms')::numeric, 0)
        + coalesce(greatest(0, extract(epoch FROM clock_timestamp() - rendering_since)) * 1000, 0)
      )) || ${JSON.stringify(fields)}::text::jsonb
    )`

/** Returns SQL for `attempts` with the failure of the render or of the unconfirmed submit. */
const attemptsAfter = (
  sql: SqlClient.SqlClient,
  { route, step }: JobAt<"submitting" | "rendering">,
  { class: outcome, detail, status }: AttemptFailure
): Statement.Fragment => {
  const attempt = {
    route: route?.id ?? "",
    provider: route?.provider.name ?? "",
    outcome,
    status,
    detail: toDetail(detail)
  }
  return step === "rendering"
    ? endLastAttempt(sql, attempt)
    : sql`attempts || ${JSON.stringify([{ ...attempt, ms: 0 }])}::text::jsonb`
}

const decodeJobs = Schema.decodeUnknown(Schema.Array(LeasedJob))

export interface NewJob {
  readonly id: string
  readonly org: OrgId
  readonly key: KeyId
  readonly hold: string
  readonly requestId: string
  readonly endUser: string | undefined
  readonly tag: string | undefined
  readonly trace: string | undefined
  readonly model: string
  readonly seconds: number
  readonly price: NanoUsd
  readonly prompt: string
  readonly referenceUrl: string | undefined
  readonly reference: string | undefined
  readonly webhookUrl: string | undefined
  readonly timeoutSeconds: number
  readonly lease: string
}

interface Exceptions {
  /** Jobs that are not claimed. */
  readonly excludedIds?: ReadonlyArray<string>
  /** Jobs that are claimed only once they have finished or missed their deadline. */
  readonly deferredIds?: ReadonlyArray<string>
}

interface Completion {
  readonly mediaName: string
  readonly cost: bigint | undefined
  /** Handles of the sandbox are deleted, because they contain the prompt. */
  readonly isSandbox: boolean
}

export interface JobFailure {
  readonly error: VideoError
  readonly failure?: AttemptFailure | undefined
  readonly attempts?: ReadonlyArray<AttemptEntry>
  /** Whether the render must still be cancelled at the provider. */
  readonly isCancelling?: boolean
  readonly isSandbox: boolean
}

interface SubmitFields extends Pick<LeasedJob, "uncertainSubmits" | "mayRetryRoute"> {
  readonly id: string
  readonly route: string
}

/** In percent. Less than 100, because the clip must still be downloaded. */
const maxUnfinishedProgress = 99

/** Every transition of a job requires its lease. */
export class VideoSql {
  readonly #sql: SqlClient.SqlClient
  readonly #columns: Statement.Fragment
  readonly #leaseEnd: Statement.Fragment

  constructor(sql: SqlClient.SqlClient, lease: Duration.Duration) {
    this.#sql = sql
    this.#columns = sql.literal(
      "videos.*, accepted_at IS NOT NULL AS is_accepted, (extract(epoch FROM videos.deadline - now()) * 1000)::double precision AS left_ms"
    )
    this.#leaseEnd = sql.literal(`now() + ${Duration.toSeconds(lease)} * interval '1 second'`)
  }

  insert(job: NewJob) {
    return this.#sql`
        INSERT INTO videos (id, org_id, key_id, hold_id, request_id, trace, model, seconds, price, prompt, reference_url,
          reference, webhook_url, end_user, tag, deadline, lease, lease_until)
        VALUES (${job.id}, ${job.org}, ${job.key}, ${job.hold}, ${job.requestId}, ${job.trace ?? null}, ${job.model},
          ${job.seconds}, ${job.price}, ${job.prompt}, ${job.referenceUrl ?? null}, ${job.reference ?? null},
          ${job.webhookUrl ?? null}, ${job.endUser === undefined ? null : toStorable(job.endUser)}, ${job.tag ?? null},
          now() + ${job.timeoutSeconds} * interval '1 second', ${job.lease}, ${this.#leaseEnd})
        ON CONFLICT (id) DO NOTHING`
  }

  /**
   * Claims due jobs. It accepts each job, unless its instance died before the submit and no idempotency key refers to
   * it, because the customer then does not know the job.
   */
  claim(limit: number, { excludedIds = [], deferredIds = [] }: Exceptions = {}) {
    return Effect.flatMap(
      this.#sql`
          WITH due AS (
            SELECT id, accepted_at IS NULL AND lease_until IS NOT NULL AND step = 'submit' AND NOT EXISTS (
                SELECT FROM idempotency_keys AS kept WHERE kept.hold_id = videos.hold_id AND key IS NOT NULL
              ) AS is_unknown
            FROM videos
            WHERE next_at <= now() AND (lease_until IS NULL OR lease_until <= now()) AND id <> ALL (${excludedIds}::text[])
              AND (id <> ALL (${deferredIds}::text[]) OR step = 'over' OR deadline <= now())
            ORDER BY next_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
          )
          UPDATE videos SET lease = gen_random_uuid(), lease_until = ${this.#leaseEnd},
            accepted_at = CASE WHEN step = 'over' OR is_unknown THEN accepted_at ELSE coalesce(accepted_at, now()) END
          FROM due WHERE videos.id = due.id
          RETURNING ${this.#columns}`,
      decodeJobs
    )
  }

  find({ id, lease }: Lease) {
    return Effect.map(
      Effect.flatMap(this.#sql`SELECT ${this.#columns} FROM videos WHERE id = ${id} AND lease = ${lease}`, decodeJobs),
      ([job]) => job
    )
  }

  /** Returns the milliseconds until the next job is due, negative if one is due already; undefined if there is none. */
  nextDue(deferredIds: ReadonlyArray<string>) {
    return Effect.map(
      this.#sql<{ readonly ms: number | null }>`
          SELECT (extract(epoch FROM min(greatest(next_at, lease_until)) - now()) * 1000)::double precision AS ms
          FROM videos WHERE next_at IS NOT NULL AND id <> ALL (${deferredIds}::text[])`,
      ([row]) => row?.ms ?? undefined
    )
  }

  /** Renews the leases. Skips locked jobs, because the other leases must not wait for them. */
  renew(jobs: ReadonlyArray<Lease>) {
    return this.#sql`
      WITH mine AS (
        SELECT id FROM videos
        WHERE id = ANY(${jobs.map(({ id }) => id)}::text[]) AND lease = ANY(${jobs.map(({ lease }) => lease)}::uuid[])
        FOR UPDATE SKIP LOCKED
      )
      UPDATE videos SET lease_until = ${this.#leaseEnd} FROM mine WHERE videos.id = mine.id`
  }

  release({ id, lease }: Lease, ms: number) {
    return this.#sql`
      UPDATE videos SET lease = NULL, lease_until = NULL, next_at = now() + ${Math.round(ms)} * interval '1 millisecond'
      WHERE id = ${id} AND lease = ${lease} AND next_at IS NOT NULL`
  }

  storeReference(job: Lease, name: string) {
    return this.#change(job, "storeReference", this.#sql`reference = ${name}`)
  }

  /** Records the route of a submit. Commit it before the submit is sent, because the instance may die after that. */
  submit(job: Lease, { uncertainSubmits, id, route, mayRetryRoute }: SubmitFields) {
    return this.#change(
      job,
      "submit",
      this.#sql`route = ${route}, may_retry_route = ${mayRetryRoute}, uncertain_submits = ${uncertainSubmits},
            attempted_routes = CASE WHEN ${id}::text = ANY(attempted_routes) THEN attempted_routes
              ELSE attempted_routes || ${id}::text END`
    )
  }

  /** Records that a submit may have reached its provider. No other submit follows. */
  recordUncertainSubmit(job: Lease, uncertainSubmits: number) {
    return this.#change(
      job,
      "recordUncertainSubmit",
      this.#sql`uncertain_submits = ${uncertainSubmits}, may_retry_route = false`
    )
  }

  render(job: Lease, handle: string, attempts: ReadonlyArray<AttemptEntry>) {
    return this.#change(
      job,
      "render",
      this.#sql`handle = ${handle}, polls = 0, downloads = 0, last_error = NULL,
            rendering_since = CASE step WHEN 'rendering' THEN rendering_since ELSE now() END, attempts = CASE step WHEN 'rendering' THEN attempts
            ELSE attempts || ${attemptsJson(attempts)}::text::jsonb END`
    )
  }

  /** Progress never decreases, even on another route. */
  poll(job: Lease, hasStarted: boolean, percent = 0, error?: string) {
    return this.#change(
      job,
      "poll",
      this.#sql`polls = polls + 1, status = CASE WHEN ${hasStarted} THEN 'in_progress' ELSE status END,
            progress = greatest(progress, ${Math.min(percent, maxUnfinishedProgress)}),
            last_error = ${error === undefined ? null : toDetail(error)}`
    )
  }

  recordError(job: Lease, error: string) {
    return this.#change(job, "poll", this.#sql`last_error = ${toDetail(error)}`)
  }

  /** Returns the number of failed downloads; undefined if another instance has the lease. */
  failDownload(job: Lease) {
    return Effect.map(
      this.#transit<{ readonly downloads: number }>(job, "poll", this.#sql`downloads = downloads + 1`, "downloads"),
      ([row]) => row?.downloads
    )
  }

  resubmit(job: JobAt<"submitting" | "rendering">, uncertainSubmits: number, failure: AttemptFailure) {
    return this.#change(
      job,
      "resubmit",
      this
        .#sql`handle = NULL, may_retry_route = false, uncertain_submits = ${uncertainSubmits}, attempts = ${attemptsAfter(this.#sql, job, failure)}`
    )
  }

  /**
   * Runs in the transaction that settles the hold. Returns whether the job was accepted; undefined if another instance
   * has the lease.
   */
  complete(job: Lease, { cost, isSandbox, mediaName }: Completion) {
    return this.#end(
      job,
      "complete",
      isSandbox,
      this
        .#sql`status = 'completed', media = ${mediaName}, sandbox = ${isSandbox}, cost = ${cost ?? null}, next_at = NULL`
    )
  }

  /** `failure` ends the current attempt. `attempts` are appended after it. */
  fail(job: LeasedJob, { attempts = [], error, failure, isCancelling = false, isSandbox }: JobFailure) {
    const sql = this.#sql
    return this.#end(
      job,
      "fail",
      isSandbox,
      sql`status = 'failed', error_code = ${error.code}, error_message = ${error.message}, cancelling = ${isCancelling},
          attempts = ${
            failure !== undefined && (job.step === "submitting" || job.step === "rendering")
              ? attemptsAfter(sql, job, failure)
              : sql`attempts`
          } || ${attemptsJson(attempts)}::text::jsonb, next_at = CASE WHEN ${isCancelling} THEN now() END`
    )
  }

  findFailed(id: string, { code, message }: VideoError) {
    return Effect.map(
      this.#sql<{ readonly accepted: boolean }>`
          SELECT accepted_at IS NOT NULL AS accepted FROM videos
          WHERE id = ${id} AND status = 'failed' AND error_code = ${code} AND error_message = ${message}`,
      ([row]) => row?.accepted
    )
  }

  findMediaName(id: string) {
    return Effect.map(
      this.#sql<{ readonly mediaName: string | null }>`SELECT media AS media_name FROM videos WHERE id = ${id}`,
      ([row]) => row?.mediaName ?? undefined
    )
  }

  cancelUpstream(job: Lease) {
    return this.#transit(
      job,
      "cancelUpstream",
      this.#sql`cancelling = false, next_at = NULL, lease = NULL, lease_until = NULL`
    )
  }

  /** Returns no row if another instance has the lease, or if the job is in another step. */
  #transit<A extends object>({ id, lease }: Lease, name: LeasedTransition, set: Statement.Fragment, returning = "id") {
    const { from, to } = transitions[name]
    return this.#sql<A>`UPDATE videos SET step = ${to}, ${set}
      WHERE id = ${id} AND lease = ${lease} AND step IN ${this.#sql.in([...from])} RETURNING ${this.#sql.literal(returning)}`
  }

  #change(job: Lease, name: LeasedTransition, set: Statement.Fragment) {
    return Effect.map(this.#transit(job, name, set), (rows) => rows.length > 0)
  }

  #end(job: Lease, name: "complete" | "fail", isSandbox: boolean, set: Statement.Fragment) {
    return this.#transit<{ readonly accepted: boolean }>(
      job,
      name,
      this.#sql`completed_at = now(), prompt = '', reference_url = NULL, lease = NULL, lease_until = NULL,
        handle = CASE WHEN ${isSandbox} THEN NULL ELSE handle END, ${set}`,
      "accepted_at IS NOT NULL AS accepted"
    ).pipe(Effect.map(([row]) => row?.accepted))
  }
}
