import type { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer, Schema, Struct } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { Surface } from "../../domain/Model.ts"
import { OrgId } from "../../domain/Organization.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { beatAgeOf, InstanceState, stateOf } from "../instance/InstanceState.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"
import { InFlight, type RunningRequest } from "../runtime/InFlight.ts"
import type { TimingValues } from "../runtime/Timings.ts"
import { equals, inScope, recordsOf, whenDefined } from "../sql/Statement.ts"
import { RefundJournal, Refunds } from "./Refunds.ts"

const whereKnown = { description: "Of videos, and of requests that the process which answers runs itself; else null." }

/** Money that is reserved, and what it waits for. */
export const OpenHold = Schema.Struct({
  id: Schema.String.annotations({ description: "Its request has the same `id` in the log, once it is over." }),
  org: OrgId,
  org_name: Schema.String,
  key_id: KeyId,
  key_name: TextOrNull,
  model: TextOrNull.annotations(whereKnown),
  surface: Schema.NullOr(Surface).annotations(whereKnown),
  request_id: TextOrNull.annotations(whereKnown),
  amount_usd: Usd,
  state: Schema.Literal("open"),
  created_at: UnixSeconds,
  age_seconds: Schema.Number,
  waits_for: Schema.Literal("request", "video", "refund", "sweep", "nothing").annotations({
    description:
      "What closes it: the end of a `request` that runs or of a `video`; a `refund` or release that is repeated until the database confirms it; the next `sweep` of holds whose process is gone; `nothing`, which is a broken ledger."
  }),
  detail: Schema.String.annotations({ description: "The same in a sentence." }),
  instance: TextOrNull.annotations({ description: "The process that it belongs to; null for a video." }),
  video: TextOrNull.annotations({ description: "The video that is being made." })
}).annotations({ identifier: "OpenHold" })
export type OpenHold = typeof OpenHold.Type

/** What the database knows beyond that of an open hold, which explains it. */
const causes = {
  instance_name: TextOrNull,
  instance_state: Schema.NullOr(InstanceState),
  beat_age_seconds: Schema.NullOr(Schema.Number),
  video_status: TextOrNull,
  video_step: Schema.NullOr(Schema.Literal("submit", "submitting", "rendering", "over")),
  progress: Schema.NullOr(Schema.Number)
}
const OpenHoldRow = Schema.Struct({ ...Struct.omit(OpenHold.fields, "waits_for", "detail"), ...causes })
type OpenHoldRow = typeof OpenHoldRow.Type

type Reason = Pick<OpenHold, "waits_for" | "detail">

const refund: Reason = {
  waits_for: "refund",
  detail: "Its request is over; giving the hold back is repeated until the database confirms it."
}
const nothing: Reason = {
  waits_for: "nothing",
  detail: "No process and no unfinished video has it: gateway ledger verify shows what is broken."
}

const sweepOf = (state: string): Reason => ({
  waits_for: "sweep",
  detail: `${state}: it is released within seconds, as long as an instance runs and nothing locks the organization's row.`
})

const reasonOfInstance = (row: OpenHoldRow, deadAfter: Duration.Duration): Reason => {
  const { beat_age_seconds: age, instance, instance_name, instance_state } = row
  const name = instance_name ?? `the instance ${instance}`
  switch (instance_state) {
    case "running":
      return { waits_for: "request", detail: `A request runs on ${name}.` }
    case "silent":
      return {
        waits_for: "request",
        detail: `A request runs on ${name}, whose last heartbeat is ${age} s old; at ${Duration.toSeconds(deadAfter)} s its holds are released.`
      }
    case "stopped":
      return sweepOf(`Its process, ${name}, has stopped`)
    case "dead":
      return sweepOf(`Its process, ${name}, has had no heartbeat for ${age} s`)
    default:
      return nothing
  }
}

const videoSteps = {
  submit: "no provider has taken it yet",
  submitting: "it is on its way to a provider",
  rendering: "a provider renders it"
}

const reasonOfVideo = ({ progress, video_status, video_step }: OpenHoldRow): Reason => {
  if (video_step === null || video_step === "over") return nothing
  const done = progress === null || progress === 0 ? "" : `, ${progress} % are done`
  return {
    waits_for: "video",
    detail: `The video is ${video_status?.replace("_", " ")}: ${videoSteps[video_step]}${done}.`
  }
}

/** `request`: what runs under the hold, where this process runs it. */
const explainHold = (
  row: OpenHoldRow,
  isPending: boolean,
  request: RunningRequest | undefined,
  deadAfter: Duration.Duration
): OpenHold => {
  const reason = isPending ? refund : row.instance === null ? reasonOfVideo(row) : reasonOfInstance(row, deadAfter)
  return {
    ...Struct.omit(row, ...Struct.keys(causes)),
    model: row.model ?? request?.model ?? null,
    surface: row.surface ?? request?.surface ?? null,
    request_id: row.request_id ?? request?.requestId ?? null,
    ...reason
  }
}

/** What a process knows of open holds beyond the database; nothing by default. */
export class ProcessHolds extends Context.Reference<ProcessHolds>()("gateway/ProcessHolds", {
  defaultValue: (): {
    /** Those that this process runs. */
    readonly requests: () => ReadonlyArray<RunningRequest>
    /** Holds whose refund or release the database has not confirmed. */
    readonly refunds: Effect.Effect<ReadonlyArray<string>>
  } => ({ requests: () => [], refunds: Effect.succeed([]) })
}) {
  /** For a process that serves. */
  static readonly layer = Layer.effect(
    ProcessHolds,
    Effect.map(Effect.all([InFlight, Refunds]), ([{ requests }, { pendingHolds }]) => ({
      requests,
      refunds: pendingHolds
    }))
  )

  /** For a command, which carries out no refund: by the journal that it shares with a gateway. */
  static readonly layerJournal = Layer.effect(
    ProcessHolds,
    Effect.map(RefundJournal, ({ entries }) => ({
      requests: () => [],
      refunds: Effect.catchAll(
        Effect.map(entries, (pending) => pending.map(({ hold }) => hold)),
        ({ message }) => Effect.as(Effect.logWarning(`The journal of refunds cannot be read: ${message}`), [])
      )
    }))
  )
}

export interface HoldQuery {
  readonly org?: OrgId | undefined
  /** Only those that have been open for so many milliseconds. */
  readonly olderThan?: number | undefined
  /** The id of the last hold of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

/** A thousand years: the database's calendar ends, while a duration may be any. */
const longestAge = 1000 * 365 * 86_400_000

/** Oldest first. */
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
        const age = Math.min(millis, longestAge)
        return sql`created_at <= now() - ${age} * interval '1 millisecond'`
      }),
      ...whenDefined(after, (id) => {
        const named = sql.and([sql`id = ${id}::uuid`, ...inScope(sql, scope)])
        return sql`(created_at, id) > ((SELECT created_at FROM all_holds WHERE ${named}), ${id}::uuid)`
      })
    ])} ORDER BY created_at, id LIMIT ${limit}`

  // The planner expects few ids of an array, and looks up what belongs to them.
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
    const pending = new Set(yield* refunds)
    const found = yield* rows(scope, query)
    const running = new Map(requests().map((request) => [request.hold, request]))
    return found.map((row) => explainHold(row, pending.has(row.id), running.get(row.id), timings.deadAfter))
  })
}
