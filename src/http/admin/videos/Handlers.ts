import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { NotFound } from "../../../domain/Failure.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { nameAll, nameOne } from "../../../services/admin/Names.ts"
import * as Operations from "../../../services/admin/VideoOperations.ts"
import { type VideoRecord, videoRecord } from "../../../services/admin/VideoRecord.ts"
import { VideoAdmin } from "../../../services/videos/VideoAdmin.ts"
import { AdminApi } from "../AdminApi.ts"
import { conflict, recordOf } from "../Fields.ts"
import { filtersOf } from "../Filters.ts"
import { cutPage, defaultListed, wrongCursor } from "../Page.ts"

const wellFormedId = /^vid_[0-9a-f]{32}$/

const nameInScope = (record: VideoRecord) => Effect.flatMap(CurrentActor, ({ scope }) => nameOne(scope, record))

const noSuch = (id: string) => () => new NotFound({ message: `There is no video ${id}.` })

export const VideosHandlers = HttpApiBuilder.group(
  AdminApi,
  "videos",
  Effect.fnUntraced(function* (handlers) {
    const videos = yield* VideoAdmin
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, ...given } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !wellFormedId.test(after)) return yield* wrongCursor
          const { scope } = yield* CurrentActor
          const rows = yield* videos.list(scope, { ...(yield* filtersOf(given)), after, limit: limit + 1 })
          const { data, ...page } = cutPage(rows, limit, videoRecord, ({ id }) => id)
          return { data: yield* nameAll(scope, data), ...page }
        })
      )
      .handle("show", ({ path: { id } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return yield* nameOne(scope, videoRecord(yield* videos.find(scope, id)))
        }).pipe(Effect.catchTags({ VideoNotFound: noSuch(id) }))
      )
      .handle("cancel", ({ path: { id } }) =>
        recordOf(Operations.cancel.run(id)).pipe(
          Effect.flatMap(nameInScope),
          Effect.catchTags({ VideoNotFound: noSuch(id), VideoOver: conflict(null) })
        )
      )
      .handle("retry", ({ path: { id } }) =>
        recordOf(Operations.retry.run(id)).pipe(
          Effect.flatMap(nameInScope),
          Effect.catchTags({ VideoNotFound: noSuch(id), VideoOver: conflict(null) })
        )
      )
  })
)
