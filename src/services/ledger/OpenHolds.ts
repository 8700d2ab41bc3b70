import type { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema, Struct } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { Surface } from "../../domain/Model.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { beatAgeOf, InstanceState, stateOf } from "../instance/Instance.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"
import { InFlight, type RunningRequest } from "../runtime/InFlight.ts"
import type { TimingValues } from "../runtime/Timings.ts"
import { equals, inScope, recordsOf, whenDefined } from "../sql/SqlStatement.ts"
import { RefundJournal, Refunds } from "./Refunds.ts"

const requestDetail = {
  description: "Set for videos, and for requests that run on the instance that serves this response. Otherwise null."
}

/** An open hold and the event that closes it. */
export const OpenHold = Schema.Struct({
  id: Schema.String.annotations({ description: "The request has the same `id` in the request log once it ends." }),
  org: OrgId,
  org_name: Schema.String,
  key_id: KeyId,
  key_name: TextOrNull,
  model: TextOrNull.annotations(requestDetail),
  surface: Schema.NullOr(Surface).annotations(requestDetail),
  request_id: TextOrNull.annotations(requestDetail),
  amount_usd: Usd,
  state: Schema.Literal("open"),
  created_at: UnixSeconds,
  age_seconds: Schema.Number,
  waits_for: Schema.Literal("request", "video", "refund", "sweep", "nothing").annotations({
    description:
      "The event that closes the hold. `request` or `video`: its end. `refund`: a refund or release that is retried until the database confirms it. `sweep`: the next release of holds of dead instances. `nothing`: the ledger is broken."
  }),
  detail: Schema.String.annotations({ description: "`waits_for` as a sentence." }),
  instance: TextOrNull.annotations({ description: "The instance that owns the hold. Null for a video." }),
  video: TextOrNull.annotations({ description: "The id of the unfinished video." })
}).annotations({ identifier: "OpenHold" })
export type OpenHold = typeof OpenHold.Type

/** Columns that explain an open hold. */
const causeFields = {
  instance_name: TextOrNull,
  instance_state: Schema.NullOr(InstanceState),
  beat_age_seconds: Schema.NullOr(Schema.Number),
  video_status: TextOrNull,
  video_step: Schema.NullOr(Schema.Literal("submit", "submitting", "rendering", "over")),
  progress: Schema.NullOr(Schema.Number)
}
const OpenHoldRow = Schema.Struct({ ...Struct.omit(OpenHold.fields, "waits_for", "detail"), ...causeFields })
type OpenHoldRow = typeof OpenHoldRow.Type

type Reason = Pick<OpenHold, "waits_for" | "detail">

const pendingRefund: Reason = {
  waits_for: "refund",
  detail: "The request has ended. Its refund or release is retried until the database confirms it."
}
const noOwner: Reason = {
  waits_for: "nothing",
  detail: "No instance and no unfinished video owns the hold. Run gateway ledger verify to find the cause."
}

const sweepOf = (state: string): Reason => ({
  waits_for: "sweep",
  detail: `${state}. The hold is released within seconds if an instance runs and nothing locks the organization's row.`
})

const reasonOfInstance = (row: OpenHoldRow, deadAfter: Duration.Duration): Reason => {
  const { beat_age_seconds: age, instance, instance_name, instance_state } = row
  const name = instance_name ?? `instance ${instance}`
  switch (instance_state) {
    case "running":
      return { waits_for: "request", detail: `A request runs on ${name}.` }
    case "silent":
      return {
        waits_for: "request",
        detail: `A request runs on ${name}. The last heartbeat of the instance was ${age} s ago. Its holds are released after ${Duration.toSeconds(deadAfter)} s.`
      }
    case "stopped":
      return sweepOf(`${name} has stopped`)
    case "dead":
      return sweepOf(`${name} has had no heartbeat for ${age} s`)
    default:
      return noOwner
  }
}

const videoSteps = {
  submit: "not yet submitted to a provider",
  submitting: "submitting to a provider",
  rendering: "rendering at a provider"
}

const reasonOfVideo = ({ progress, video_status, video_step }: OpenHoldRow): Reason => {
  if (video_step === null || video_step === "over") return noOwner
  const progressText = progress === null || progress === 0 ? "" : `, ${progress}% complete`
  return {
    waits_for: "video",
    detail: `The video is ${video_status?.replace("_", " ")}: ${videoSteps[video_step]}${progressText}.`
  }
}

/** `request` is the request of the hold, if this process runs it. */
const explainHold = (
  row: OpenHoldRow,
  isPending: boolean,
  request: RunningRequest | undefined,
  deadAfter: Duration.Duration
): OpenHold => {
  const reason = isPending
    ? pendingRefund
    : row.instance === null
      ? reasonOfVideo(row)
      : reasonOfInstance(row, deadAfter)
  return {
    ...Struct.omit(row, ...Struct.keys(causeFields)),
    model: row.model ?? request?.model ?? null,
    surface: row.surface ?? request?.surface ?? null,
    request_id: row.request_id ?? request?.requestId ?? null,
    ...reason
  }
}

/** What this process knows about open holds and the database does not. Nothing by default. */
export class ProcessHolds extends Context.Reference<ProcessHolds>()("gateway/ProcessHolds", {
  defaultValue: (): {
    /** Requests that this process runs. */
    readonly requests: () => ReadonlyArray<RunningRequest>
    /** Holds whose refund or release is not confirmed by the database. */
    readonly refunds: Effect.Effect<ReadonlyArray<string>>
  } => ({ requests: () => [], refunds: Effect.succeed([]) })
}) {
  /** The requests and pending refunds of a gateway process. */
  static readonly layer = Layer.effect(
    ProcessHolds,
    Effect.map(Effect.all([InFlight, Refunds]), ([{ requests }, { pendingHolds }]) => ({
      requests,
      refunds: pendingHolds
    }))
  )

  /** For commands: they run no requests, and read the pending refunds from the journal of the gateway. */
  static readonly layerJournal = Layer.effect(
    ProcessHolds,
    Effect.map(RefundJournal, ({ entries }) => ({
      requests: () => [],
      refunds: Effect.catchAll(
        Effect.map(entries, (pendingRefunds) => pendingRefunds.map(({ hold }) => hold)),
        ({ message }) => Effect.as(Effect.logWarning(`Failed to read the refund journal: ${message}`), [])
      )
    }))
  )
}

export interface HoldQuery {
  readonly org?: OrgId | undefined
  /** The minimum age in milliseconds. */
  readonly olderThan?: number | undefined
  /** The id of the last hold on the previous page. */
  readonly after?: string | undefined
  readonly limit: number
}

/** A thousand years. A longer duration may exceed the range of the database's timestamps. */
const maxAgeMillis = 1000 * 365 * 86_400_000

/** Returns the oldest first. */
export const makeOpenHolds = (
  sql: SqlClient.SqlClient,
  { refunds, requests }: typeof ProcessHolds.Service,
  timings: TimingValues
) => {
  const ids = (scope: OrganizationScope, { after, limit, olderThan, org }: HoldQuery) => sql`
    SELECT id FROM all_holds WHERE ${sql.and([
      sql`state = 'open'`,
      ...equals(sql, { org_id: scope.narrow(org) }),
      ...whenDefined(olderThan, (millis) => {
        const age = Math.min(millis, maxAgeMillis)
        return sql`created_at <= now() - ${age} * interval '1 millisecond'`
      }),
      ...whenDefined(after, (id) => {
        const cursor = sql.and([sql`id = ${id}::uuid`, ...inScope(sql, scope)])
        return sql`(created_at, id) > ((SELECT created_at FROM all_holds WHERE ${cursor}), ${id}::uuid)`
      })
    ])} ORDER BY created_at, id LIMIT ${limit}`

  // The ids are in an array, because the planner expects arrays to be short and so finds the rows by index.
  const rows = (scope: OrganizationScope, query: HoldQuery) =>
    recordsOf(OpenHoldRow)(sql`
      SELECT hold.id, hold.org_id AS org, organizations.name AS org_name, hold.key_id, api_keys.name AS key_name,
        videos.model, CASE WHEN videos.id IS NOT NULL THEN 'video' END AS surface, videos.request_id,
        hold.amount AS amount_usd, hold.state, hold.created_at,
        greatest(0, floor(extract(epoch FROM now() - hold.created_at)))::float8 AS age_seconds,
        hold.instance_id AS instance, served.host || ':' || served.pid AS instance_name,
        CASE WHEN instances.id IS NOT NULL THEN ${sql.literal(stateOf("instances", timings))} END AS instance_state,
        ${sql.literal(beatAgeOf("instances"))} AS beat_age_seconds,
        videos.id AS video, videos.status AS video_status, videos.step AS video_step, videos.progress
      FROM all_holds AS hold JOIN organizations ON organizations.id = hold.org_id
      LEFT JOIN api_keys ON api_keys.id = hold.key_id
      LEFT JOIN videos ON videos.hold_id = hold.id
      LEFT JOIN instances ON instances.id = hold.instance_id
      LEFT JOIN instance_catalogs AS served ON served.instance_id = hold.instance_id
      WHERE hold.state = 'open' AND hold.id = ANY (ARRAY(${ids(scope, query)}))
      ORDER BY hold.created_at, hold.id`)

  return Effect.fn("LedgerAdmin.openHolds")(function* (scope: OrganizationScope, query: HoldQuery) {
    const pendingHolds = new Set(yield* refunds)
    const holds = yield* rows(scope, query)
    const requestByHold = new Map(requests().map((request) => [request.hold, request]))
    return holds.map((row) => explainHold(row, pendingHolds.has(row.id), requestByHold.get(row.id), timings.deadAfter))
  })
}
