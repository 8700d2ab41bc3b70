import { Duration, Schema, Struct } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { Surface } from "../../domain/Model.ts"
import { OrgId } from "../../domain/Organization.ts"
import { InstanceState } from "../instance/InstanceState.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"
import type { RunningRequest } from "../runtime/InFlight.ts"

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

/** What the database knows of an open hold. */
export const OpenHoldRow = Schema.Struct({
  ...Struct.omit(OpenHold.fields, "waits_for", "detail"),
  instance_name: TextOrNull,
  instance_state: Schema.NullOr(InstanceState),
  beat_age_seconds: Schema.NullOr(Schema.Number),
  video_status: TextOrNull,
  video_step: Schema.NullOr(Schema.Literal("submit", "submitting", "rendering", "over")),
  progress: Schema.NullOr(Schema.Number)
})
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
export const explainHold = (
  row: OpenHoldRow,
  isPending: boolean,
  request: RunningRequest | undefined,
  deadAfter: Duration.Duration
): OpenHold => {
  const known = Struct.omit(
    row,
    "beat_age_seconds",
    "instance_name",
    "instance_state",
    "progress",
    "video_status",
    "video_step"
  )
  const reason = isPending ? refund : row.instance === null ? reasonOfVideo(row) : reasonOfInstance(row, deadAfter)
  return {
    ...known,
    model: row.model ?? request?.model ?? null,
    surface: row.surface ?? request?.surface ?? null,
    request_id: row.request_id ?? request?.requestId ?? null,
    ...reason
  }
}
