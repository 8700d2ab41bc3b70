import { Effect } from "effect"
import { VideoAdmin } from "../videos/VideoAdmin.ts"
import { auditResource, operation } from "./Operation.ts"
import { VideoRecord, videoRecord } from "./VideoRecord.ts"

const videos = auditResource({
  name: "videos",
  record: VideoRecord,
  find: (scope, id) => Effect.flatMap(VideoAdmin, ({ find }) => Effect.map(find(scope, id), videoRecord))
})

/** Tells the provider where possible. */
export const cancel = operation("Fail a video that is not over and give its hold back", (id: string) =>
  videos.changeWith(
    "cancel",
    id,
    {},
    (scope, id) => Effect.flatMap(VideoAdmin, ({ cancel }) => cancel(scope, id)),
    videoRecord
  )
)

export const retry = operation("Look at a video that is not over now, instead of after its rest", (id: string) =>
  videos.changeWith(
    "retry",
    id,
    {},
    (scope, id) => Effect.flatMap(VideoAdmin, ({ retry }) => retry(scope, id)),
    videoRecord
  )
)
