import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Schema } from "effect"
import { NotFound } from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../services/admin/Names.ts"
import { VideoAdmin, VideoRecord } from "../../services/admin/VideoAdmin.ts"
import * as Operations from "../../services/admin/VideoOperations.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, ReadAccess, WriteAccess } from "./Access.ts"
import { conflict, recordOf } from "./Fields.ts"
import { filtersOf, organizationParameter, spanParameters } from "./Filters.ts"
import { membersSee } from "./Members.ts"
import { cutPage, defaultListed, pageOf, pageParameters, wrongCursor } from "./Page.ts"

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
        ...oneOf(...VideoRecord.fields.status.literals),
        "Where they stand; all if left out."
      ),
      ...spanParameters
    })
  )
  .addSuccess(pageOf(NamedVideo, "Videos"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List videos, newest first")
  .annotateContext(
    membersSee(pageOf(MemberVideo, "MemberVideos"), {
      parameters: ["limit", "after", "organization", "model", "status", "since", "until"]
    })
  )

const show = HttpApiEndpoint.get("show", "/videos/:id")
  .setPath(reference)
  .addSuccess(NamedVideo)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show a video and everything that was tried for it")
  .annotateContext(membersSee(MemberVideo))

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

const wellFormedId = /^vid_[0-9a-f]{32}$/

const noSuch = (id: string) => () => new NotFound({ message: `There is no video ${id}.` })

export const VideosHandlers = HttpApiBuilder.group(
  adminApiOf(VideosGroup),
  "videos",
  Effect.fnUntraced(function* (handlers) {
    const videos = yield* VideoAdmin
    const change =
      ({ run }: typeof Operations.cancel | typeof Operations.retry) =>
      ({ path: { id } }: { readonly path: typeof reference.Type }) =>
        recordOf(run(id)).pipe(
          Effect.flatMap(nameOne),
          Effect.catchTags({ VideoNotFound: noSuch(id), VideoOver: conflict(null) })
        )
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !wellFormedId.test(after)) return yield* wrongCursor
          const { scope } = yield* CurrentActor
          const rows = yield* videos.list(scope, { ...(yield* filtersOf(given)), after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, identity<VideoRecord>, ({ id }) => id)
          return { data: yield* nameAll(data), ...page }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return yield* nameOne(yield* videos.find(scope, id))
        }).pipe(Effect.catchTags({ VideoNotFound: noSuch(id) }))
      )
      .handle("cancel", change(Operations.cancel))
      .handle("retry", change(Operations.retry))
  })
)
