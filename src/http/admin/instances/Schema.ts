import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import type { InstanceRow } from "../../../services/control/Instances.ts"
import { TextOrNull, TimeOrNull, UnixSeconds } from "../../../services/resources/Record.ts"
import { ReadAccess, ReadErrors } from "../Access.ts"
import { pageOf } from "../Page.ts"

export const InstanceRecord = Schema.Struct({
  id: Schema.String,
  host: TextOrNull,
  pid: Schema.NullOr(Schema.Number),
  state: Schema.Literal("running", "silent", "stopped", "dead"),
  started_at: UnixSeconds,
  beat_at: UnixSeconds,
  beat_age_seconds: Schema.Number.annotations({ description: "Since its last heartbeat; one is due every 5 seconds." }),
  stopped_at: TimeOrNull,
  fingerprint: TextOrNull.annotations({ description: "Of the catalog that it serves." }),
  models: Schema.NullOr(Schema.Number),
  problem: TextOrNull.annotations({ description: "Why it goes on with the catalog it had." }),
  generation: Schema.NullOr(Schema.Number).annotations({ description: "Of the last reload that it answered." }),
  read_at: TimeOrNull
}).annotations({ identifier: "Instance" })

export const instanceRecord = (instance: InstanceRow): typeof InstanceRecord.Type => ({
  id: instance.id,
  host: instance.host,
  pid: instance.pid,
  state: instance.state,
  started_at: instance.startedAt,
  beat_at: instance.beatAt,
  beat_age_seconds: Math.round(instance.beatAgeSeconds * 10) / 10,
  stopped_at: instance.stoppedAt,
  fingerprint: instance.fingerprint,
  models: instance.models,
  problem: instance.problem,
  generation: instance.generation,
  read_at: instance.readAt
})

const list = HttpApiEndpoint.get("list", "/instances")
  .addSuccess(pageOf(InstanceRecord, "Instances"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Processes that run, or ended within a day, newest first; always whole")

export const InstancesGroup = HttpApiGroup.make("instances").add(list).addError(ReadErrors)
