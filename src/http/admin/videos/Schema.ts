import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import * as Operations from "../../../services/admin/VideoOperations.ts"
import { VideoRecord } from "../../../services/admin/VideoRecord.ts"
import { TextOrNull } from "../../../services/resources/Record.ts"
import { parameter } from "../../schema/Query.ts"
import { ChangeErrors, ReadAccess, WriteAccess } from "../Access.ts"
import { organizationParameter, spanParameters } from "../Filters.ts"
import { membersSee, OpenToMembers } from "../Members.ts"
import { pageOf, pageParameters } from "../Page.ts"

export const NamedVideo = Schema.Struct({
  ...VideoRecord.fields,
  org_name: TextOrNull
}).annotations({ identifier: "NamedVideo" })

const MemberVideo = NamedVideo.pick(
  "id",
  "request_id",
  "at",
  "status",
  "org",
  "org_name",
  "key_id",
  "model",
  "seconds",
  "price_usd",
  "charge_usd",
  "refunded_usd",
  "error",
  "progress",
  "completed_at",
  "deleted_at",
  "deadline"
)

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "A video's id, `vid_…`." }) })

const list = HttpApiEndpoint.get("list", "/videos")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      model: parameter("model", Schema.String, "must be a model's id", "A model's id; all if left out."),
      status: parameter(
        "status",
        VideoRecord.fields.status,
        `must be one of ${VideoRecord.fields.status.literals.join(", ")}`,
        "Where they stand; all if left out."
      ),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(NamedVideo, "Videos"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List videos, newest first")
  .annotate(
    OpenToMembers,
    membersSee(pageOf(MemberVideo, "MemberVideos"), {
      parameters: ["limit", "after", "organization", "model", "status", "since", "until"]
    })
  )

const show = HttpApiEndpoint.get("show", "/videos/:id")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a video and everything that was tried for it")
  .annotate(OpenToMembers, membersSee(MemberVideo))

const cancel = HttpApiEndpoint.post("cancel", "/videos/:id/cancel")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.cancel.summary)

const retry = HttpApiEndpoint.post("retry", "/videos/:id/retry")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.retry.summary)

export const VideosGroup = HttpApiGroup.make("videos").add(list).add(show).add(cancel).add(retry).addError(ChangeErrors)
