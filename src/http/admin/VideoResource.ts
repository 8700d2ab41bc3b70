import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { NotFound } from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../services/admin/Names.ts"
import * as Operations from "../../services/admin/VideoAdmin.ts"
import { VideoAdmin, VideoRecord } from "../../services/admin/VideoAdmin.ts"
import { MediaStore } from "../../services/media/MediaStore.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, WriteAccess } from "./AdminAccess.ts"
import {
  cutPage,
  defaultLimit,
  filtersOf,
  invalidCursor,
  organizationParameter,
  pageOf,
  pageParameters,
  spanParameters
} from "./AdminLists.ts"
import { conflict, recordOf } from "./Fields.ts"

export const NamedVideo = Schema.Struct({
  ...VideoRecord.fields,
  org_name: TextOrNull,
  url: TextOrNull.annotations({
    description: "The address of the file, as customers get it. Null unless the video is completed and not deleted."
  })
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
  "deadline",
  "url"
)

const reference = Schema.Struct({ id: Schema.String.annotations({ description: "A video's id, `vid_…`." }) })

const listEndpoint = HttpApiEndpoint.get("list", "/videos")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...organizationParameter,
      model: queryParameter("model", Schema.String, "must be a model's id", "A model's id. The default is all."),
      status: queryParameter(
        "status",
        ...oneOf(...VideoRecord.fields.status.literals),
        "The video's status. The default is all."
      ),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(NamedVideo, "Videos"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List videos, newest first")
  .annotateContext(
    exposeToMembers(pageOf(MemberVideo, "MemberVideos"), {
      parameters: ["limit", "after", "organization", "model", "status", "since", "until"]
    })
  )

const showEndpoint = HttpApiEndpoint.get("show", "/videos/:id")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a video and its attempts")
  .annotateContext(exposeToMembers(MemberVideo))

const cancelEndpoint = HttpApiEndpoint.post("cancel", "/videos/:id/cancel")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.cancel.summary)

const retryEndpoint = HttpApiEndpoint.post("retry", "/videos/:id/retry")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.retry.summary)

export const VideosGroup = HttpApiGroup.make("videos")
  .add(listEndpoint)
  .add(showEndpoint)
  .add(cancelEndpoint)
  .add(retryEndpoint)
  .addError(ChangeErrors)

const wellFormedId = /^vid_[0-9a-f]{32}$/

const videoNotFound = (id: string) => () => new NotFound({ message: `There is no video ${id}.` })

export const VideosHandlers = HttpApiBuilder.group(
  adminApiOf(VideosGroup),
  "videos",
  Effect.fnUntraced(function* (handlers) {
    const videos = yield* VideoAdmin
    const { link } = yield* MediaStore
    const toAnswer = (video: VideoRecord) => ({
      ...video,
      url: video.media === null || video.deleted_at !== null ? null : link(video.media)
    })
    const change =
      ({ run }: typeof Operations.cancel | typeof Operations.retry) =>
      ({ path: { id } }: { readonly path: typeof reference.Type }) =>
        recordOf(run(id)).pipe(
          Effect.flatMap((video) => nameOne(toAnswer(video))),
          Effect.catchTags({ VideoNotFound: videoNotFound(id), VideoAlreadyFinished: conflict(null) })
        )
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, ...filters } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !wellFormedId.test(after)) return yield* invalidCursor
          const { scope } = yield* CurrentActor
          const rows = yield* videos.list(scope, { ...(yield* filtersOf(filters)), after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, toAnswer, ({ id }) => id)
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return yield* nameOne(toAnswer(yield* videos.find(scope, id)))
        }).pipe(Effect.catchTags({ VideoNotFound: videoNotFound(id) }))
      )
      .handle("cancel", change(Operations.cancel))
      .handle("retry", change(Operations.retry))
  })
)
